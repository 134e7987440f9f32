"""The page of every metric that a run or a reward server gives Prometheus, made from their registry."""

from collections.abc import Iterable, Iterator
from unittest.mock import MagicMock

from mkdocs.exceptions import PluginError
from prometheus_client import CollectorRegistry
from reference.words import table

from adjudge.engine.serving.server import metrics_of
from adjudge.engine.telemetry.metrics import Metrics

ENDINGS = {"counter": "_total", "histogram": "_bucket", "info": "_info"}


def prometheus_page() -> str:
    """The page of every metric."""
    everywhere, served = Metrics(), Metrics()
    scorer = MagicMock()  # a reward server with every part that may be configured
    scorer.evaluator.metrics = served
    metrics_of(scorer, MagicMock())
    known = {name for name, *_ in _rows(everywhere.registry)}
    return f"""# Metrics for Prometheus

`adjudge serve` has them at `/metrics`. A run serves them at `ADJUDGE_METRICS` and leaves the last values in its
`metrics.prom` ([monitoring](../deploy/README.md#monitoring)). A histogram has `_sum` and `_count` beside `_bucket`.
No label holds text of a report, a page or a request.

## Runs and servers

{_table(row for row in _rows(everywhere.registry))}

## Reward servers

{_table(row for row in _rows(served.registry) if row[0] not in known)}
"""


def _table(rows: Iterable[tuple[str, str, str, str]]) -> str:
    return table(("metric", "type", "labels", "counts"), rows)


def _rows(registry: CollectorRegistry) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, labels and words of every metric, by name. Raises PluginError for one without words."""
    found = []
    for collector in registry._collector_to_names:
        for family in collector.collect():
            if not family.documentation:
                raise PluginError(f"{family.name}: has no help")
            labels = getattr(collector, "_labelnames", ()) or getattr(family, "_labelnames", ())
            labels = labels or sorted(
                {label for sample in family.samples for label in sample.labels} - {"le"}
            )
            name = f"`{family.name}{ENDINGS.get(family.type, '')}`"
            found.append((name, family.type, ", ".join(f"`{one}`" for one in labels), family.documentation))
    yield from sorted(found)
