"""Whether a judge says the same to everything: the verdicts of a protocol, as long as all of them are equal."""

import msgspec

from adjudge.scoring.contract.scorecard import Outcome, Scorecard

__all__ = ["Constant", "ConstantVerdicts"]

LEAST = 20
"""The number of equal verdicts from which they are told of: fewer may be chance."""

_NO_VERDICTS = frozenset({"missing", "note", "problem"})


class Constant(msgspec.Struct, frozen=True):
    """So many `verdicts` of a judge, each of them this (`said`, in words)."""

    said: str
    verdicts: int


class ConstantVerdicts:
    """Finds protocols whose verdicts are all equal, as scorecards pass; the same whatever their order."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, int] | None] = {}

    def take(self, card: Scorecard) -> None:
        """Look at the verdicts in `card`; those of a protocol that had different ones are not looked at."""
        found = self._found.get(card.protocol, ("", 0))
        if found is None:
            return
        for line in card.evidence:
            if line.judgment and line.outcome.kind not in _NO_VERDICTS:
                said = _said(line.outcome)
                if found[1] and found[0] != said:
                    found = None
                    break
                found = said, found[1] + 1
        self._found[card.protocol] = found

    def result(self) -> dict[str, Constant]:
        """By protocol, the verdict that was given every time, at least 20 times."""
        return {
            name: Constant(*found)
            for name, found in sorted(self._found.items())
            if found is not None and found[1] >= LEAST
        }


def _said(outcome: Outcome) -> str:
    """The words that equal verdicts share: of a mark, its points, beside those of a reference if there is one."""
    if outcome.kind != "points" or outcome.points is None:
        return outcome.kind.replace("_", " ")
    beside = "" if outcome.reference is None else f" beside {outcome.reference:g}"
    return f"{outcome.points:g}{'' if outcome.most is None else f' of {outcome.most:g}'}{beside}"
