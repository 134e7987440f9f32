"""`adjudge view`: a run in local web pages, read from its Parquet files on demand."""

from adjudge.engine.viewer.app import Viewer, view

__all__ = ["Viewer", "view"]
