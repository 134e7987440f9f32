"""`adjudge rewards`: scores a logged training run again, with another judge or another formula.

Another formula uses the stored answers. Rollouts are compared within their groups, one prompt at one step, because that
is how a trainer compares them.
"""

import argparse
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.engine.commands.exits import DONE, INCOMPLETE
from adjudge.engine.commands.interruption import interruptible
from adjudge.engine.commands.notices import rejected
from adjudge.engine.commands.output import out, print_result, print_table
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.rewards.report import report_in
from adjudge.engine.rewards.reward import RewardError
from adjudge.engine.rewards.run_log import Logged, Place, Refused, at, places
from adjudge.engine.rewards.scorer import RewardScorer, open_replay
from adjudge.engine.runs.scores import figure
from adjudge.engine.tables.cells import coefficient
from adjudge.engine.tables.table import Column, Table
from adjudge.judges.plural import plural
from adjudge.scoring.kernels.agreement.correlations import correlations
from adjudge.scoring.kernels.agreement.human_consistency import mid_ranks

BATCH = 256
SHOWN = 10
_START = 80
_MONTH_S = 30 * 86_400.0

Floats = npt.NDArray[np.float64]


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout, by its line in the log: its reward and rank in its group before and after, and how its report starts.

    Rank 1 is the best; equal rewards share the mean of their ranks.
    """

    line: int
    step: int | None
    task: str
    before: float
    after: float
    rank_before: float
    rank_after: float
    start: str


class ReplayedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The `rollouts` of one task at one step that have both rewards.

    `kendall` is tau-b between the two, None where either has one value alone; `best_changed` says that no rollout is
    the best of both.
    """

    step: int | None
    task: str
    rollouts: int
    mean_before: float
    mean_after: float
    kendall: float | None
    best_changed: bool


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """Logged rewards beside those of the replay; figures are over the `both` rollouts that have two, or None.

    `lost` had a reward and have none now, by reason; `won` have one only now; `neither` have none. `kendall_in_groups`
    is the mean over groups of two or more; `flipped` is the share of rollouts that change sides of their group's mean.
    `gain_by_length` is Spearman's rho between what a rollout gained and the characters of its report. `changed` are the
    groups whose order changed most; `gained` and `fell` the rollouts whose reward did.
    """

    log: str
    judges_before: tuple[str, ...]
    judge_after: str
    rollouts: int
    both: int
    lost: dict[str, int]
    won: int
    neither: int
    mean_before: float | None
    mean_after: float | None
    pearson: float | None
    spearman: float | None
    kendall: float | None
    groups: int
    kendall_in_groups: float | None
    best_changed: int
    flipped: float | None
    gain_by_length: float | None
    changed: tuple[ReplayedGroup, ...]
    gained: tuple[Moved, ...]
    fell: tuple[Moved, ...]
    rejected: int
    examples: tuple[Rejected, ...]
    said: str

    @property
    def is_whole(self) -> bool:
        """Whether every line was read and every rollout scored again."""
        return not self.rejected and not self.lost and not self.neither


class _Pair(msgspec.Struct, frozen=True):
    """A rollout with its two rewards."""

    line: int
    group: tuple[int, str]
    before: float | None
    after: float | None
    reason: str
    chars: int
    start: str


async def replay(log: str | Path, config: RunConfig, formula: str | None = None) -> Replay:
    """Score the rollouts of `log` again by `config`, and compare; of a log of several formulas, those of `formula`.

    Raises UsageError, StoreError, and JudgeError for a judge that cannot be used.
    """
    file, refused = Path(log), Refused()
    known = list(places(file, refused))
    chosen = _chosen(known, formula)
    found = sorted(
        (place for place in known if place.formula == chosen), key=lambda place: (place.group, place.line)
    )
    judges: set[str] = set()
    pairs: list[_Pair] = []
    async with open_replay(config) as scorer:
        for batch in _batches(found):
            logged = at(file, batch)
            judges.update(one.judge for one in logged)
            pairs += [pair async for pair in _scored(scorer, batch, logged)]
        judge = scorer.judge
    return _compared(str(file), tuple(sorted(judges)), judge, pairs, refused)


def _chosen(found: Sequence[Place], formula: str | None) -> str:
    """The formula whose rollouts are replayed. Raises UsageError where there are others and none is chosen."""
    counts = Counter(place.formula for place in found)
    if formula is None and len(counts) < 2:
        return next(iter(counts), "")
    if formula in counts:
        return str(formula)
    listed = ", ".join(
        f"{name or chr(39) * 2} ({plural(count, 'rollout')})" for name, count in counts.items()
    )
    raise UsageError(
        f"log: its rewards are of {plural(len(counts), 'formula')}, which cannot be compared: {listed}; choose one "
        "with --formula"
    )


def _batches(found: Sequence[Place]) -> Iterator[list[Place]]:
    """Whole groups, about BATCH rollouts at a time, since a reward may depend on its group."""
    batch: list[Place] = []
    for _, group in groupby(found, key=lambda place: place.group):
        batch += group
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


async def _scored(
    scorer: RewardScorer, batch: Sequence[Place], logged: Sequence[Logged]
) -> AsyncIterator[_Pair]:
    """The pairs of a batch; the rollouts of one step are scored in one call."""
    both = zip(batch, logged, strict=True)
    for step, together in groupby(both, key=lambda one: one[1].step):
        same = list(together)
        try:
            rewards = await scorer.score([one.item for _, one in same], deadline=_MONTH_S, step=step)
        except RewardError as error:
            raise UsageError(f"log: line {same[0][0].line}: {error}") from error
        for (place, one), reward in zip(same, rewards, strict=True):
            text = report_in(one.item.said, scorer.reward_config.report_rules, one.item.mask).text
            start = " ".join(text[: 4 * _START].split())[:_START]
            reason = str(reward.reason or "")
            yield _Pair(place.line, place.group, one.reward.value, reward.value, reason, len(text), start)


def _compared(file: str, judges: tuple[str, ...], judge: str, pairs: list[_Pair], refused: Refused) -> Replay:
    both = [pair for pair in pairs if pair.before is not None and pair.after is not None]
    values = np.array([[pair.before for pair in both], [pair.after for pair in both]], dtype=np.float64)
    gains = values[1] - values[0]
    pearson, spearman, kendall = _agreement(values)
    groups, moved, flips = _grouped(both)
    many = [group for group in groups if group.rollouts > 1]
    taus = [group.kendall for group in many if group.kendall is not None]
    lengths = np.array([pair.chars for pair in both], dtype=np.float64)
    made = Replay(
        log=file,
        judges_before=judges,
        judge_after=judge,
        rollouts=len(pairs),
        both=len(both),
        lost=dict(Counter(p.reason for p in pairs if p.before is not None and p.after is None).most_common()),
        won=sum(pair.before is None and pair.after is not None for pair in pairs),
        neither=sum(pair.before is None and pair.after is None for pair in pairs),
        mean_before=figure(values[0].mean()) if both else None,
        mean_after=figure(values[1].mean()) if both else None,
        pearson=pearson,
        spearman=spearman,
        kendall=kendall,
        groups=len(many),
        kendall_in_groups=sum(taus) / len(taus) if taus else None,
        best_changed=sum(group.best_changed for group in many),
        flipped=sum(flips) / len(flips) if flips else None,
        gain_by_length=_agreement(np.array([gains, lengths]))[1],
        changed=tuple(sorted(many, key=_least_alike)[:SHOWN]),
        gained=tuple(_most(moved, 1.0)),
        fell=tuple(_most(moved, -1.0)),
        rejected=refused.count,
        examples=tuple(refused.examples),
        said="",
    )
    return msgspec.structs.replace(made, said=_said(made))


def _agreement(values: Floats) -> tuple[float | None, float | None, float | None]:
    """Pearson's r, Spearman's rho and Kendall's tau-b of two rows; None where undefined."""
    if values.shape[1] < 2:
        return None, None, None
    found = correlations(values)
    matrices = (found.pearson, found.spearman, found.kendall)
    pearson, spearman, kendall = (None if one is None else figure(one[0, 1]) for one in matrices)
    return pearson, spearman, kendall


def _grouped(both: Sequence[_Pair]) -> tuple[list[ReplayedGroup], list[Moved], list[bool]]:
    """The groups, their rollouts, and of those with others whether they changed sides of the mean."""
    groups, moved, flips = list[ReplayedGroup](), list[Moved](), list[bool]()
    ordered = sorted(both, key=lambda pair: (pair.group, pair.line))
    for (number, task), together in groupby(ordered, key=lambda pair: pair.group):
        same = list(together)
        step = None if number < 0 else number
        values = np.array([[pair.before for pair in same], [pair.after for pair in same]], dtype=np.float64)
        ranks = np.array([mid_ranks(-row) for row in values])
        means = values.mean(axis=1)
        groups.append(
            ReplayedGroup(
                step=step,
                task=task,
                rollouts=len(same),
                mean_before=float(means[0]),
                mean_after=float(means[1]),
                kendall=_agreement(values)[2],
                best_changed=not (values == values.max(axis=1, keepdims=True)).all(axis=0).any(),
            )
        )
        moved += [
            Moved(
                line=pair.line,
                step=step,
                task=task,
                before=float(values[0, place]),
                after=float(values[1, place]),
                rank_before=float(ranks[0, place]),
                rank_after=float(ranks[1, place]),
                start=pair.start,
            )
            for place, pair in enumerate(same)
        ]
        if len(same) > 1:
            sides = np.sign(values - means[:, None])
            flips += [bool(flip) for flip in sides[0] * sides[1] < 0]
    return groups, moved, flips


def _least_alike(group: ReplayedGroup) -> tuple[float, int, str]:
    return (
        2.0 if group.kendall is None else group.kendall,
        -1 if group.step is None else group.step,
        group.task,
    )


def _most(moved: Sequence[Moved], sign: float) -> list[Moved]:
    """The rollouts whose reward rose most, or with a `sign` of -1 fell most."""
    chosen = [one for one in moved if sign * (one.after - one.before) > 0]
    return sorted(chosen, key=lambda one: (sign * (one.before - one.after), one.line))[:SHOWN]


def _said(found: Replay) -> str:
    if not found.both:
        return "No rollout has both rewards, so nothing can be compared."
    if found.kendall_in_groups is None or found.flipped is None:
        means = f"from {found.mean_before:.3f} to {found.mean_after:.3f}"
        return f"The mean reward went {means}; no group has an order to compare."
    return (
        f"Within groups, old and new order agree by a mean tau of {found.kendall_in_groups:.2f}; "
        f"another rollout is best in {found.best_changed} of {plural(found.groups, 'group')}, and "
        f"{found.flipped:.1%} of the rollouts change sides of their group's mean."
    )


def run(options: argparse.Namespace) -> int:
    """Score a log of rewards again, and print how the two differ."""
    config = RunConfig.load(options.config, store=options.store, judge=options.judge)
    found = interruptible(replay(options.log, config, options.formula))
    rejected(found.examples)
    print_result(options, found, _print_replay)
    return DONE if found.is_whole else INCOMPLETE


def _print_replay(found: Replay) -> None:
    """Print rewards beside those of a replay: figures, groups, rollouts and a closing sentence."""
    console = out()
    for table in _tables(found):
        print_table(table)
    console.print(found.said, markup=False, soft_wrap=True)


def _tables(found: Replay) -> list[Table]:
    """Figures of a replay; then, where there are any, the groups that changed most and the rollouts that moved."""
    tables = [_figures(found)]
    groups = [
        (
            _step(group.step),
            group.task,
            f"{group.rollouts:,}",
            coefficient(group.mean_before),
            coefficient(group.mean_after),
            coefficient(group.kendall),
        )
        for group in found.changed
    ]
    if groups:
        columns = _columns("step", "task", "rollouts", "before", "after", "tau")
        tables.append(Table.of(title="groups whose order changed most", columns=columns, blocks=[groups]))
    for title, rollouts in (
        ("rollouts that gained most", found.gained),
        ("rollouts that fell most", found.fell),
    ):
        rows = [
            (
                str(one.line),
                _step(one.step),
                one.task,
                coefficient(one.before),
                coefficient(one.after),
                f"{one.rank_before:g} -> {one.rank_after:g}",
                one.start,
            )
            for one in rollouts
        ]
        if rows:
            columns = _columns("line", "step", "task", "before", "after", "rank", "report")
            tables.append(Table.of(title=title, columns=columns, blocks=[rows]))
    return tables


def _figures(found: Replay) -> Table:
    counts = {
        "rollouts": found.rollouts,
        "with both rewards": found.both,
        **{f"without the new one: {reason}": count for reason, count in found.lost.items()},
        "with the new one alone": found.won,
        "with neither": found.neither,
        "lines that hold no rollout": found.rejected,
    }
    figures = {
        "mean reward before": coefficient(found.mean_before),
        "mean reward after": coefficient(found.mean_after),
        "Pearson's r": coefficient(found.pearson),
        "Spearman's rho": coefficient(found.spearman),
        "Kendall's tau": coefficient(found.kendall),
        "Kendall's tau within groups": coefficient(found.kendall_in_groups),
        "share that changed sides of its group's mean": coefficient(found.flipped),
        "rho of gain and length": coefficient(found.gain_by_length),
    }
    rows = [
        *((name, f"{count:,}") for name, count in counts.items()),
        ("groups with another best rollout", f"{found.best_changed:,} of {found.groups:,}"),
        *figures.items(),
    ]
    title = f"{found.log}: {', '.join(found.judges_before) or '-'}, then {found.judge_after}"
    return Table.of(title=title, columns=(Column("", words=True), Column("figure")), blocks=[rows])


def _columns(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, words=name in ("task", "report")) for name in names)


def _step(step: int | None) -> str:
    return "-" if step is None else str(step)
