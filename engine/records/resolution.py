"""How a run ended that was to stop once it knew how the full run would order the systems."""

import msgspec

__all__ = ["Resolution", "ResolvedPair"]


class ResolvedPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two systems: `ahead` is the one that the full run would put first, known after `resolved_at` tasks; None if open.

    `difference` is the mean of `a` minus `b` over the `n_used` tasks judged and scored for both; `low`..`high` is the
    interval then (or at the end) for what it would be over all planned tasks, None where it is still undefined.
    """

    a: str
    b: str
    ahead: str | None
    resolved_at: int | None
    difference: float | None
    low: float | None
    high: float | None
    n_used: int


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """How a run that may stop early ended: after `judged_tasks` of `planned_tasks`, every system on the same ones.

    The chance that any of `pairs` is resolved wrongly, against what the full run would say, is at most `error_rate`
    (confidence sequences; exact rules in `scoring.kernels.comparison.confidence_sequences`). `saved_questions` is an
    estimate: the number of scorecards left out times the mean number of questions of those made.
    """

    protocol: str
    metric: str
    error_rate: float
    planned_tasks: int
    judged_tasks: int
    pairs: tuple[ResolvedPair, ...]
    asked_questions: int
    saved_questions: int
    saved_scorecards: int

    @property
    def early(self) -> bool:
        """Whether tasks were left out."""
        return self.judged_tasks < self.planned_tasks

    @property
    def note(self) -> str:
        """The outcome in one line, for readers of the scores."""
        name = f"{self.protocol}.{self.metric}"
        if not self.early:
            open_still = sum(
                pair.resolved_at is None or pair.resolved_at == self.planned_tasks for pair in self.pairs
            )
            return (
                f"all {self.planned_tasks} tasks were judged: {open_still} of {len(self.pairs)} comparisons by {name} "
                "were open to the end"
            )
        share = self.saved_questions / max(1, self.asked_questions + self.saved_questions)
        return (
            f"stopped early, after {self.judged_tasks} of {self.planned_tasks} tasks: all {len(self.pairs)} "
            f"comparisons by {name} were resolved, error rate {self.error_rate:g} together; about "
            f"{self.saved_questions:,} questions saved ({share:.0%})"
        )
