"""One limit of requests in flight, leased in shares to whoever has work; together never more than the whole."""

__all__ = ["Leases", "shares"]


class _Lease:
    """What one holder has: its latest lease, and the most it may still have out."""

    def __init__(self) -> None:
        self.number = 0
        self.share = 0
        self.bound = 0


class Leases:
    """Who holds how much of `total`. No Ray here: `divide` says what is to be sent."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._leases: dict[str, _Lease] = {}

    def join(self, holder: str) -> None:
        """`holder` takes part, with nothing yet."""
        self._leases[holder] = _Lease()

    def leave(self, holder: str) -> None:
        """`holder` is surely gone: what it had is free."""
        self._leases.pop(holder, None)

    def report(self, holder: str, number: int, held: int) -> None:
        """`holder` says that under its lease `number` it holds `held`. A report from before its latest says nothing."""
        lease = self._leases[holder]
        if number == lease.number:
            lease.bound = max(lease.share, held)

    def divide(self, busy: list[str]) -> list[tuple[str, int, int]]:
        """New leases (holder, number, share), so that the `busy` have equal shares as soon as others give way."""
        if not busy:
            return []
        wanted = dict.fromkeys(self._leases, 0)
        wanted |= dict(zip(sorted(busy), shares(self._total, len(busy)), strict=False))
        changed = [holder for holder, share in wanted.items() if share < self._leases[holder].share]
        for holder in changed:
            self._leases[holder].share = wanted[holder]
        free = self._total - sum(lease.bound for lease in self._leases.values())
        for holder, share in wanted.items():
            lease = self._leases[holder]
            grown = min(share, lease.bound + free)
            if grown > lease.share:
                free -= max(0, grown - lease.bound)
                lease.share = grown
                lease.bound = max(lease.bound, grown)
                changed.append(holder)
        for holder in changed:
            self._leases[holder].number += 1
        return [(holder, self._leases[holder].number, self._leases[holder].share) for holder in changed]


def shares(total: int, parts: int) -> list[int]:
    """`total` in whole parts as equal as can be, each at least 1; fewer parts if there are not so many."""
    parts = min(parts, total)
    return [total // parts + (part < total % parts) for part in range(parts)]
