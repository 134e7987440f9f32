"""Single verdicts of two judges on the same things: what scores hide that vary by what no judge decided."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from adjudge.engine.runs.run import Run
from adjudge.scoring.contract.scorecard import Evidence, Outcome

__all__ = ["VerdictsOfTwo", "verdicts_of_two"]


class VerdictsOfTwo(msgspec.Struct, frozen=True, kw_only=True):
    """The `n` verdicts of one protocol that two runs both have, each on the same line of evidence of one report.

    `same` is the share that are equal, `kappa` Cohen's (None where both give everything one and the same verdict).
    `constant` is the share that would be equal if the run's judge always gave its `commonest` verdict, whatever it was
    shown; `share` is how much of the run's verdicts that one is. `kinds` count different verdicts, of either run.
    """

    protocol: str
    n: int
    same: float
    kappa: float | None
    commonest: str
    share: float
    constant: float
    kinds: int


def verdicts_of_two(run: Run, other: Run) -> dict[str, VerdictsOfTwo]:
    """By protocol, the verdicts that both runs' judges gave. Raises StoreError."""
    theirs = dict(_verdicts(other))
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for key, verdict in _verdicts(run):
        if key in theirs:
            pairs[key[0]].append((verdict, theirs[key]))
    return {protocol: _compared(protocol, own) for protocol, own in pairs.items()}


_Key = tuple[str, str, str, int, int, str, str, int]


def _verdicts(run: Run) -> Iterator[tuple[_Key, str]]:
    """Each line that a judge decided, under what was judged; equal ones of one report are numbered."""
    for card in run.cards:
        seen: Counter[tuple[str, str]] = Counter()
        for line in card.evidence:
            what = line.id or line.what.strip(), line.url
            seen[what] += 1
            if _is_decided(line):
                report = (card.protocol, card.task_id, card.system, card.sample, card.repeat)
                yield (*report, *what, seen[what]), _said(line.outcome)


def _is_decided(line: Evidence) -> bool:
    return bool(line.judgment) and not line.reason and line.outcome.kind != "missing"


def _said(outcome: Outcome) -> str:
    return (
        f"{outcome.points:g}"
        if outcome.points is not None
        else outcome.words.strip().casefold() or outcome.kind
    )


def _compared(protocol: str, pairs: Sequence[tuple[str, str]]) -> VerdictsOfTwo:
    size = len(pairs)
    first, second = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    same = sum(one == other for one, other in pairs) / size
    by_chance = sum(count * second[verdict] for verdict, count in first.items()) / size**2
    commonest, most = min(first.items(), key=lambda item: (-item[1], item[0]))
    return VerdictsOfTwo(
        protocol=protocol,
        n=size,
        same=same,
        kappa=(same - by_chance) / (1 - by_chance) if by_chance < 1 - 1e-12 else None,
        commonest=commonest,
        share=most / size,
        constant=second[commonest] / size,
        kinds=len(first | second),
    )
