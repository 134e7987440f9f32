"""What a run could not score, and where: the pages and reports behind each reason, for who wants to repair it."""

from bisect import insort

import msgspec

from adjudge.scoring.contract.scorecard import Scorecard

__all__ = ["Failure", "Failures"]

_PLACES = 3
_LONGEST = 200  # characters of a place


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The `scorecards` of a protocol that lack scores for one `reason`.

    `places` are some of what failed, in alphabetical order: URLs, or "SYSTEM on TASK".
    """

    protocol: str
    reason: str
    scorecards: int
    places: tuple[str, ...]


class Failures:
    """Counts what is unscored, as scorecards pass; the same whatever their order."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._places: dict[tuple[str, str], list[str]] = {}

    def take(self, card: Scorecard) -> None:
        """Count what `card` misses."""
        for reason in {str(reason) for reason in card.reasons.values()}:
            key = card.protocol, reason
            self._counts[key] = self._counts.get(key, 0) + 1
            urls = [line.url for line in card.evidence if line.reason == reason and line.url]
            for place in urls or [f"{card.system} on {card.task_id}"]:
                self._add(self._places.setdefault(key, []), place[:_LONGEST])

    def _add(self, places: list[str], place: str) -> None:
        if place not in places and (len(places) < _PLACES or place < places[-1]):
            insort(places, place)
            del places[_PLACES:]

    def result(self) -> tuple[Failure, ...]:
        """What was missing until now, by protocol and reason."""
        return tuple(
            Failure(
                protocol=protocol,
                reason=reason,
                scorecards=count,
                places=tuple(self._places[protocol, reason]),
            )
            for (protocol, reason), count in sorted(self._counts.items())
        )
