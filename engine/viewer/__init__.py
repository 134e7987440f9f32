"""`adjudge view`: a run in a local web page, read from its Parquet as it is looked at."""

from adjudge.engine.viewer.app import Viewer, view

__all__ = ["Viewer", "view"]
