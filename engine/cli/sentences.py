"""What a comparison comes to, in one sentence."""

from collections.abc import Sequence

from adjudge.engine.cli.figures import coefficient
from adjudge.engine.commands.agreement import MetricAgreement
from adjudge.engine.commands.compare import Comparison, PairedMetric
from adjudge.engine.commands.labels import LabelAgreement
from adjudge.engine.commands.preferences import MetricPreference
from adjudge.engine.rendering.cells import number

__all__ = ["agreement_said", "comparison_said", "labels_said", "preferences_said"]

ALPHA = 0.05


def comparison_said(found: Comparison) -> str:
    """Which of two systems is better by the headline of each protocol, if either is."""
    heads = [row for row in found.metrics if row.headline] or list(found.metrics[:1])
    if not heads:
        return f"{found.a} and {found.b} have no metric in common."
    said = "; ".join(_compared(found.a, found.b, row) for row in heads)
    return f"{said}."


def _compared(a: str, b: str, row: PairedMetric) -> str:
    on = f"on {row.protocol} {row.metric}"
    if row.difference is None:
        return f"no task is scored for both {a} and {b} {on}"
    if abs(row.difference * row.scale) < 0.005 and (row.t_p is None or row.t_p > ALPHA):
        return f"{a} and {b} score the same {on}, on the mean of {_tasks(row.n_used)}"
    more = "higher" if row.difference > 0 else "lower"
    by = f"{number(abs(row.difference), row.scale)} {more}"
    where = f"{on} (lower is better)" if row.lower_is_better else on
    if row.low is None or row.high is None:
        return f"{a} scores {by} than {b} {where}, on {_tasks(row.n_used)} only, too few to tell more"
    ends = sorted((row.low, row.high) if row.difference > 0 else (-row.low, -row.high))
    span = f"95 % interval {number(ends[0], row.scale)} to {number(ends[1], row.scale)}"
    p = row.holm_p
    sure = span if p is None else f"{span}, p {'< 0.001' if p < 0.001 else f'= {p:.3f}'} after Holm"
    if p is None or p > ALPHA:
        return f"{a} scores {by} than {b} {where}, which may be chance ({sure})"
    return f"{a} scores {by} than {b} {where} ({sure})"


def _tasks(count: int) -> str:
    return f"{count:,} task{'' if count == 1 else 's'}"


def agreement_said(found: Sequence[MetricAgreement], whom: str) -> str:
    """How often the judge orders two reports as `whom` does, by the first metric of each protocol."""
    first = {row.protocol: row for row in reversed(found)}
    said = "; ".join(_ordered(row, whom) for row in reversed(first.values()))
    return f"{said}." if said else "No metric was rated."


def _ordered(row: MetricAgreement, whom: str) -> str:
    name = f"{row.protocol} {row.metric}"
    if row.par is None:
        if not row.n_cases:
            return f"by {name} no report has a score of the judge and one of {whom}"
        return f"by {name} no two reports on a task can be compared, with {_counted(row.n_systems, 'system')}"
    interval = row.intervals.get("par")
    inside = "" if interval is None else f", 95 % interval {interval[0]:.1%} to {interval[1]:.1%}"
    people = f", people among themselves {row.par_people:.1%}" if row.par_people is not None else ""
    pairs = "1 pair" if row.n_pairs == 1 else f"{row.n_pairs:,} pairs"
    return f"by {name} the judge orders {row.par:.1%} of {pairs} of reports as {whom} would{_aside(inside + people)}"


def _aside(text: str) -> str:
    return f" ({text.removeprefix(', ')})" if text else ""


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def labels_said(found: Sequence[LabelAgreement]) -> str:
    """How often the judge's verdict is that of most people, by protocol."""
    said = "; ".join(_labelled(row) for row in found)
    return f"{said}." if said else "No verdict was labelled."


def _labelled(row: LabelAgreement) -> str:
    if row.accuracy is None:
        return f"under {row.name} no verdict has a label of people and of the judge"
    ends = row.accuracy_interval
    inside = "" if ends is None else f", 95 % interval {ends[0]:.1%} to {ends[1]:.1%}"
    kappa = "" if row.kappa is None else f", kappa {coefficient(row.kappa)}"
    verdicts = _counted(row.n_items, "verdict")
    if row.weighed:
        inside, verdicts = (
            f"{inside}, estimated from {verdicts} by {_counted(row.n_raters, 'rater')}",
            f"the run's {_counted(row.n_verdicts, 'verdict')}",
        )
    return f"under {row.name} the judge gives {row.accuracy:.1%} of {verdicts} as people do{_aside(inside + kappa)}"


def preferences_said(found: Sequence[MetricPreference]) -> str:
    """How often the metric puts what people preferred first, by metric."""
    said = "; ".join(_preferred(row) for row in found)
    return f"{said}." if said else "No preference could be looked up."


def _preferred(row: MetricPreference) -> str:
    name = f"{row.protocol} {row.metric}"
    if row.overall.best_of is None:
        return f"by {name} no set has a score for each of its reports"
    inside = "" if row.low is None or row.high is None else f", 95 % interval {row.low:.1%} to {row.high:.1%}"
    sets = _counted(row.overall.n_scored, "set")
    return (
        f"by {name} the report that people chose comes first in {row.overall.best_of:.1%} of {sets}"
        f"{_aside(f'{inside}, {row.chance:.1%} by chance')}"
    )
