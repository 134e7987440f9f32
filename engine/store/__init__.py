"""What was asked, read and scored: immutable Parquet parts, one folder a table, readable by any Parquet reader."""

from adjudge.engine.store.judgments import JudgmentStore
from adjudge.engine.store.pages import PageStore
from adjudge.engine.store.place import Place, StoreError
from adjudge.engine.store.scorecards import ScorecardStore

__all__ = ["JudgmentStore", "PageStore", "Place", "ScorecardStore", "StoreError"]
