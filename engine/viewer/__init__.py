"""`adjudge view`: a run in local web pages, read from its Parquet files on demand, or written as files."""

from adjudge.engine.viewer.app import Viewer, view
from adjudge.engine.viewer.export import Exported, export

__all__ = ["Exported", "Viewer", "export", "view"]
