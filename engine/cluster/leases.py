"""One limit of requests in flight, leased in shares to holders that have work; together never more than the whole."""

__all__ = ["Leases", "shares"]


class _Lease:
    """The latest lease of one holder, and the most that it may still have in flight (`bound`)."""

    def __init__(self) -> None:
        self.number = 0
        self.share = 0
        self.bound = 0


class Leases:
    """Who holds how much of `total`. Does not use Ray: `divide` returns the messages to send."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._leases: dict[str, _Lease] = {}

    def join(self, holder: str) -> None:
        """Add `holder`, with a share of 0."""
        self._leases[holder] = _Lease()

    def leave(self, holder: str) -> None:
        """Remove `holder`, which must be dead, and free its share."""
        self._leases.pop(holder, None)

    def report(self, holder: str, number: int, held: int) -> None:
        """Note that `holder` holds `held` under its lease `number`; reports under earlier leases are ignored."""
        lease = self._leases[holder]
        if number == lease.number:
            lease.bound = max(lease.share, held)

    def divide(self, busy: list[str]) -> list[tuple[str, int, int]]:
        """New leases (holder, number, share), which give the `busy` equal shares as soon as others release theirs."""
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
    """`total` in `parts` whole numbers as equal as possible, each at least 1; fewer parts if `total` is smaller."""
    parts = min(parts, total)
    return [total // parts + (part < total % parts) for part in range(parts)]
