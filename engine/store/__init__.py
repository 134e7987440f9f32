"""The store of judgments, pages and scorecards: immutable Parquet parts, one folder per table."""

from adjudge.engine.store.judgments import JudgmentStore
from adjudge.engine.store.pages import PageStore
from adjudge.engine.store.place import Place
from adjudge.engine.store.scorecards import ScorecardStore

__all__ = [
    "JudgmentStore",
    "PageStore",
    "Place",
    "ScorecardStore",
]
