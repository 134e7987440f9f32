"""The page of every metric of every protocol, made from what the protocols declare and say of themselves."""

from collections.abc import Iterable

from mkdocs.exceptions import PluginError
from reference.words import table

from adjudge.engine.config.metrics import headlines
from adjudge.scoring.contract.protocol import Comparing, installed_protocols, published_protocols
from adjudge.scoring.contract.scorecard import Metric, explained
from adjudge.scoring.rubrics.criteria import Criterion
from adjudge.scoring.rubrics.figures import ByCriteria

PAGES = {"dr3": "dr3-eval", "livedr": "livedrbench"}
"""Pages of docs/protocols/ that are not named as their protocol."""
NAMED = Criterion(criterion="Any.", points=1.0, tags=("NAME",))


def metrics_page() -> str:
    """The page of every metric."""
    published = {name: load()(checkout="none") for name, load in published_protocols()}
    sections = "\n\n".join(
        section(name, load()(), published.get(name))
        for name, load in sorted(installed_protocols())
        if load().__module__.startswith("adjudge.")
    )
    return f"""# Metrics

Values are as rewards and `scores.parquet` have them; leaderboards show them times 100 where the paper does. The lower
end of a range is what an empty or oversized report gets, and an open range has no upper end. A metric that
is pooled over tasks, as a ratio of two sums, has no value for a single report and cannot be part of a reward.
`NAME` stands for a tag, axis or section of a task's own criteria.

A metric may be made of many parts, of which some have no answer: [scorecards](../concepts/scorecard.md) and
[failures](../failures.md) say what becomes of it. [What is computed](../computed.md) says which figure of a paper each
metric is.

{sections}
"""


def section(name: str, protocol: object, published: object | None) -> str:
    """The section of a protocol, with the metrics that only its published calls give."""
    own = [explained(protocol, one) for one in declared(protocol)]
    known = {one.name for one in own}
    further = [explained(published, one) for one in declared(published) if one.name not in known]
    rows = [*(_row(name, one) for one in own), *(_row(name, one, published=True) for one in further)]
    heads = ", ".join(f"`{one.name}`" for one in headlines(own))
    source = ", ".join(sorted({one.source for one in own}))
    page = PAGES.get(name, name)
    return f"""## `{name}` {{#{name}}}

Source: {source} ([rules](../protocols/{page}.md)). A leaderboard ranks by {heads}.{_in_rewards(protocol)}

{table(("metric", "meaning"), rows)}"""


def declared(protocol: object | None) -> Iterable[Metric]:
    """The metrics of a protocol, and those of a task whose criteria have a tag."""
    if protocol is None:
        return
    yield from protocol.metrics
    if isinstance(protocol, ByCriteria):
        usual = {one.name for one in protocol.metrics}
        tagged = [one.metric for one in protocol.figures([NAMED])]
        yield from (one for one in tagged if one.name not in usual)


def _in_rewards(protocol: object) -> str:
    return " It compares reports and gives no reward." if isinstance(protocol, Comparing) else ""


def _row(protocol: str, metric: Metric, *, published: bool = False) -> tuple[str, ...]:
    if not (metric.definition and metric.units and metric.source):
        raise PluginError(
            f"{protocol}.{metric.name}: has no definition, unit or source in the protocol's words"
        )
    meaning = f"{metric.definition} With `call: published`." if published else metric.definition
    better = "lower is better" if metric.lower_is_better else "higher is better"
    return f"`{metric.name}`", f"{meaning}<br>*{metric.units}, {_range(metric)}; {better}*"


def _range(metric: Metric) -> str:
    if metric.ratio is not None:
        return "pooled over tasks"
    ends = sorted(end for end in (metric.worst, metric.best) if end is not None)
    return f"{ends[0]:g} to {ends[1]:g}" if len(ends) == 2 else f"from {ends[0]:g}"
