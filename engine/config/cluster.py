"""The section `cluster:` of a configuration: where evaluators run."""

import msgspec

from adjudge.engine.config.numbers import Count, NotNegative, Seconds

__all__ = ["ClusterConfig"]


class ClusterConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where evaluators run. A string in the file is short for `address`."""

    address: str = "none"
    """`none`: this process. `local`: a small Ray on this machine. Else the address of a Ray head, or `auto`."""
    evaluators: Count | None = None
    """Number of evaluators; by default, one per CPU of the cluster."""
    fetchers: Count | None = None
    """Number of readers of live pages; by default, as many as evaluators need."""
    cpus: NotNegative = 1.0
    """Ray's logical CPUs that each evaluator and fetcher takes."""
    judge_resources: dict[str, NotNegative] = {}
    """What a judge's replica takes, by names in Ray (`GPU: 1`); without them, `cpus`."""
    flush_seconds: Seconds = 30.0
    """Answers are written at least this often, in seconds."""
    hung_seconds: Seconds = 60.0
    """A worker with work that shows neither life nor progress for so many seconds, on top of the judge's timeout, is
    replaced."""
