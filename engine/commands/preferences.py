"""A run's scores against people's preferences: does a chosen report score above the rejected ones?"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.errors import UsageError
from adjudge.engine.records.matrices import alone, figure, read_scores
from adjudge.engine.records.record import RunRecord
from adjudge.scoring.kernels.comparison.preference_accuracy import (
    Candidate,
    Preference,
    PreferenceAccuracy,
    ScoreRow,
    TiesScore,
    best_of,
    candidate_scores,
    preference_accuracy,
    scored_sides,
    ties_score,
)
from adjudge.scoring.kernels.resampling.bootstrap import bootstrap

__all__ = ["MetricPreference", "read_preferences", "with_preferences"]

Scores = dict[tuple[str, Candidate], float]


class MetricPreference(msgspec.Struct, frozen=True, kw_only=True):
    """How often a metric prefers what people preferred: over all sets, by subset, and in the ties test if there is one.

    `low` and `high` bound the overall `best_of` at 95 %, tasks resampled; None for fewer than two tasks. `chance` is
    the expected `best_of` of a judge that guesses.
    """

    protocol: str
    metric: str
    overall: PreferenceAccuracy
    low: float | None
    high: float | None
    chance: float
    subsets: dict[str, PreferenceAccuracy]
    ties: TiesScore | None


def read_preferences(file: Path) -> list[Preference]:
    """The sets in `file`, one JSON object per line. Raises UsageError.

    {"task_id": ..., "chosen": ["system", ...], "rejected": [{"system": ..., "sample": 1}, ...]}, and optionally
    "subset" and "pair". A set names each report once, and each set of a ties test has its own "pair".
    """
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"preferences: {file} cannot be read: {error}") from error
    found: list[Preference] = []
    named: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            one = msgspec.json.decode(line, type=_Line).preference()
        except (msgspec.MsgspecError, RecursionError) as error:
            raise UsageError(f"preferences: {file}:{number}: {error}") from error
        report, times = Counter((*one.chosen, *one.rejected)).most_common(1)[0]
        if times > 1:
            raise UsageError(
                f"preferences: {file}:{number}: {report.system!r} is named {times} times; name each report once"
            )
        if one.pair and named.setdefault(one.pair, number) != number:
            raise UsageError(
                f"preferences: {file}:{number}: line {named[one.pair]} has pair {one.pair!r} too; name each once"
            )
        found.append(one)
    if not found:
        raise UsageError(f"preferences: {file}: no preferences; add lines with task_id, chosen and rejected")
    return found


def with_preferences(run: str | Path, file: str | Path) -> list[MetricPreference]:
    """Agreement of every metric of the run with the preferences in `file`.

    Raises UsageError for a file that cannot be read, an invalid line, and if no set has all its reports in the run.
    """
    record = RunRecord.read(Path(run))
    sets = read_preferences(Path(file))
    scores = alone(read_scores([Path(run)]))
    scores = scores.filter(pc.is_in(scores["task_id"], pa.array({one.task_id for one in sets})))
    rows = msgspec.convert(scores.to_pylist(), list[ScoreRow])
    reports = {(row.task_id, Candidate(row.system, row.sample)) for row in rows}
    if not any(reports.issuperset(_reports(one)) for one in sets):
        raise UsageError(
            f"preferences: no set in {file} has all its reports in this run; check task_id and systems"
        )
    lower = {
        (name, metric.name): metric.lower_is_better
        for name, metrics in record.metrics.items()
        for metric in metrics
    }
    by_metric: dict[tuple[str, str], list[ScoreRow]] = {}
    for row in rows:
        by_metric.setdefault((row.protocol, row.metric), []).append(row)
    return [
        _metric(name, sets, candidate_scores(own, *name, lower.get(name, False)), record.config.seed)
        for name, own in by_metric.items()
    ]


class _Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    task_id: str
    chosen: tuple[Candidate | str, ...]
    rejected: tuple[Candidate | str, ...]
    subset: str = ""
    pair: str = ""

    def preference(self) -> Preference:
        sides = {"chosen": _candidates(self.chosen), "rejected": _candidates(self.rejected)}
        return msgspec.convert({**msgspec.structs.asdict(self), **sides}, Preference)


def _candidates(side: Iterable[Candidate | str]) -> tuple[Candidate, ...]:
    return tuple(Candidate(one) if isinstance(one, str) else one for one in side)


def _reports(one: Preference) -> set[tuple[str, Candidate]]:
    return {(one.task_id, candidate) for candidate in (*one.chosen, *one.rejected)}


def _metric(name: tuple[str, str], sets: Sequence[Preference], scores: Scores, seed: int) -> MetricPreference:
    subsets = preference_accuracy(sets, scores)
    low, high = _interval(sets, scores, seed)
    return MetricPreference(
        protocol=name[0],
        metric=name[1],
        overall=subsets.pop(""),
        low=low,
        high=high,
        chance=float(np.mean([len(one.chosen) / len(_reports(one)) for one in sets])),
        subsets=subsets,
        ties=ties_score(sets, scores) if any(one.pair for one in sets) else None,
    )


def _interval(sets: Sequence[Preference], scores: Scores, seed: int) -> tuple[float | None, float | None]:
    """The interval of the mean credit per set, tasks resampled with all their sets."""
    tasks = {task: place for place, task in enumerate(dict.fromkeys(one.task_id for one in sets))}
    credits, counts = np.zeros(len(tasks)), np.zeros(len(tasks))
    for one in sets:
        if sides := scored_sides(one, scores):
            credits[tasks[one.task_id]] += best_of(*sides)
            counts[tasks[one.task_id]] += 1
    used = counts > 0
    if used.sum() < 2:
        return None, None
    drawn = bootstrap(credits[None, used], denominators=counts[None, used], seed=seed)
    return figure(drawn.percentile[0, 0]), figure(drawn.percentile[0, 1])
