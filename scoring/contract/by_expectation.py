"""Protocols under a judge that scores by expectation: the same rules, under metric names of their own.

An expected score comes without reasoning and is a mean over labels; it is a different measurement from a sampled one,
and the two must never share a column.
"""

import msgspec

from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import CaseMetrics, ScoringProtocol, Tools
from adjudge.scoring.contract.scorecard import Metric, Scorecard

__all__ = ["PREFIX", "expected"]

PREFIX = "expected."


def expected(protocol: ScoringProtocol) -> ScoringProtocol:
    """`protocol` with every metric's name prefixed."""
    return _ExpectedByCase(protocol, protocol) if isinstance(protocol, CaseMetrics) else _Expected(protocol)


class _Expected:
    def __init__(self, protocol: ScoringProtocol) -> None:
        self._protocol = protocol

    @property
    def name(self) -> str:
        return self._protocol.name

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return tuple(map(_renamed, self._protocol.metrics))

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        card = await self._protocol.score(case, tools)
        return msgspec.structs.replace(
            card,
            scores={PREFIX + name: value for name, value in card.scores.items()},
            reasons={PREFIX + name: reason for name, reason in card.reasons.items()},
            bounds={PREFIX + name: bounds for name, bounds in card.bounds.items()},
        )


class _ExpectedByCase(_Expected):
    def __init__(self, protocol: ScoringProtocol, metrics: CaseMetrics) -> None:
        super().__init__(protocol)
        self._metrics = metrics

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        return tuple(map(_renamed, self._metrics.metrics_of(case)))


def _renamed(metric: Metric) -> Metric:
    ratio = metric.ratio and (PREFIX + metric.ratio[0], PREFIX + metric.ratio[1])
    return msgspec.structs.replace(metric, name=PREFIX + metric.name, ratio=ratio)
