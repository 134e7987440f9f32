"""Preference accuracy of a protocol as a reward model: does it score the reports that people chose above the others?

In the style of RewardBench 2: sets of chosen and rejected reports for one task; a set counts 1 if a chosen report has
the highest score alone, and a share of 1 if it ties for it. Tasks with several right answers have a separate score. A
set with a missing score is left out and counted.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import msgspec

# RewardBench 2: three fifths accuracy, two fifths margin, and a hundredth to break ties between models.
_TIES_WEIGHTS = (0.3, 0.3, 0.2, 0.2, 0.01)


class Candidate(msgspec.Struct, frozen=True):
    """A report of the set's task: by its system and the number of its sample."""

    system: str
    sample: int = 0


class Preference(msgspec.Struct, frozen=True, kw_only=True):
    """Reports for one task that people chose and rejected.

    `pair` joins the two sets of a ties test, one with a single right answer (`ref:X`) and one with several (`tied:X`).
    """

    task_id: str
    chosen: Annotated[tuple[Candidate, ...], msgspec.Meta(min_length=1)]
    rejected: Annotated[tuple[Candidate, ...], msgspec.Meta(min_length=1)]
    subset: str = ""
    pair: Annotated[str, msgspec.Meta(pattern=r"^((ref|tied):.+)?$")] = ""


class ScoreRow(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of scores.parquet that are needed here."""

    protocol: str
    system: str
    task_id: str
    metric: str
    value: float | None
    sample: int = 0
    repeat: int = 0


class PreferenceAccuracy(msgspec.Struct, frozen=True, kw_only=True):
    """The accuracy over the sets that have all their scores.

    `best_of` is the mean credit of a set, `pairwise` the share of (chosen, rejected) pairs in the right order, a tie
    counting half. Both are None without such a set. `tied` counts the sets in which a rejected report shares the
    highest score.
    """

    best_of: float | None
    pairwise: float | None
    tied: int
    n_total: int
    n_scored: int
    n_unscored: int


class TiesScore(msgspec.Struct, frozen=True, kw_only=True):
    """RewardBench 2's score for tasks with several right answers, -0.01..1.01, and its parts; None without a pair.

    `ref` and `tied` are the shares of sets whose every chosen report beats every rejected one. Over pairs: `preferred`
    is the share where the gap between right and wrong exceeds the spread among the right ones, `preferred_hard` the
    same with the smaller gap of the two sets, `margin` the mean tanh of that ratio minus one.
    """

    overall: float | None
    ref: float | None
    tied: float | None
    preferred: float | None
    preferred_hard: float | None
    margin: float | None
    n_pairs: int
    n_unscored: int


def candidate_scores(
    rows: Iterable[ScoreRow], protocol: str, metric: str, lower_is_better: bool = False
) -> dict[tuple[str, Candidate], float]:
    """(task, candidate) -> score, the mean over the judge's repeats; without the candidates that miss a repeat.

    Higher is better in the result, whatever it is in the metric.
    """
    values: dict[tuple[str, Candidate], list[float | None]] = {}
    for row in rows:
        if row.protocol == protocol and row.metric == metric:
            values.setdefault((row.task_id, Candidate(row.system, row.sample)), []).append(row.value)
    sign = -1.0 if lower_is_better else 1.0
    scores: dict[tuple[str, Candidate], float] = {}
    for key, found in values.items():
        known = [value for value in found if value is not None]
        if len(known) == len(found):
            scores[key] = sign * sum(known) / len(known)
    return scores


def scored_sides(
    preference: Preference, scores: Mapping[tuple[str, Candidate], float]
) -> tuple[list[float], list[float]] | None:
    """Scores of the chosen and of the rejected reports, or None if one is missing."""
    chosen = [scores.get((preference.task_id, candidate)) for candidate in preference.chosen]
    rejected = [scores.get((preference.task_id, candidate)) for candidate in preference.rejected]
    good, bad = [s for s in chosen if s is not None], [s for s in rejected if s is not None]
    return (good, bad) if len(good) == len(chosen) and len(bad) == len(rejected) else None


def best_of(chosen: Sequence[float], rejected: Sequence[float]) -> float:
    """The credit of a set: 0 if a rejected report scores highest, else the chosen share of those that do."""
    top = max(*chosen, *rejected)
    winners = sum(score == top for score in chosen)
    return winners / (winners + sum(score == top for score in rejected))


def pair_credit(chosen: Sequence[float], rejected: Sequence[float]) -> float:
    """The share of (chosen, rejected) pairs in which the chosen report scores higher; equal scores count half."""
    credits = [(good > bad) + 0.5 * (good == bad) for good in chosen for bad in rejected]
    return sum(credits) / len(credits)


def preference_accuracy(
    sets: Iterable[Preference], scores: Mapping[tuple[str, Candidate], float]
) -> dict[str, PreferenceAccuracy]:
    """Accuracy by subset, in order of first appearance, and over all sets under ""."""
    groups: dict[str, list[Preference]] = {"": []}
    for preference in sets:
        groups[""].append(preference)
        if preference.subset:
            groups.setdefault(preference.subset, []).append(preference)
    return {name: _accuracy(group, scores) for name, group in groups.items()}


def ties_score(sets: Iterable[Preference], scores: Mapping[tuple[str, Candidate], float]) -> TiesScore:
    """The ties test over the sets whose `pair` is `ref:X` or `tied:X`; pairs need both sets with all their scores."""
    found: dict[str, dict[str, tuple[float, float]]] = {"ref": {}, "tied": {}}
    unscored = 0
    for preference in sets:
        kind, _, pair = preference.pair.partition(":")
        known = scored_sides(preference, scores)
        if kind not in found:
            continue
        if known is None:
            unscored += 1
            continue
        good, bad = known
        found[kind][pair] = min(good) - max(bad), max(good) - min(good)
    ref, tied = found["ref"], found["tied"]
    pairs = [(ref[pair][0], *tied[pair]) for pair in sorted(ref.keys() & tied.keys())]
    parts = (
        _mean([gap > 0 for gap, _ in ref.values()]),
        _mean([gap > 0 for gap, _ in tied.values()]),
        _mean([gap > spread for _, gap, spread in pairs]),
        _mean([min(single, gap) > spread for single, gap, spread in pairs]),
        _mean([_margin(min(single, gap), spread) for single, gap, spread in pairs]),
    )
    weighted = sum(weight * (part or 0.0) for weight, part in zip(_TIES_WEIGHTS, parts, strict=True))
    return TiesScore(
        overall=weighted if pairs else None,
        ref=parts[0],
        tied=parts[1],
        preferred=parts[2],
        preferred_hard=parts[3],
        margin=parts[4],
        n_pairs=len(pairs),
        n_unscored=unscored,
    )


def _accuracy(
    sets: Sequence[Preference], scores: Mapping[tuple[str, Candidate], float]
) -> PreferenceAccuracy:
    scored = [known for preference in sets if (known := scored_sides(preference, scores)) is not None]
    credits = [best_of(good, bad) for good, bad in scored]
    pairs = sum(len(good) * len(bad) for good, bad in scored)
    right = sum(pair_credit(good, bad) * len(good) * len(bad) for good, bad in scored)
    return PreferenceAccuracy(
        best_of=_mean(credits),
        pairwise=right / pairs if pairs else None,
        tied=sum(0 < credit < 1 for credit in credits),
        n_total=len(sets),
        n_scored=len(scored),
        n_unscored=len(sets) - len(scored),
    )


def _margin(gap: float, spread: float) -> float:
    """tanh(gap / spread - 1) at its limits where there is no spread; 0 where there is no gap either."""
    if spread == 0:
        return 0.0 if gap == 0 else math.copysign(1.0, gap)
    return math.tanh(gap / spread - 1)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
