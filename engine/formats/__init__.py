"""Published layouts of tasks and reports, one small module each, turned into a `Dataset`.

A layout is a function `read(tasks, reports) -> Dataset`, registered as an entry point `adjudge.formats`: `tasks` is the
file or folder of the configuration's `tasks:`, `reports` the files that `reports:` matched (empty where it named none).
"""

from adjudge.engine.formats.dataset import Dataset, FormatError, Located, Rejected, load_dataset, load_tasks

__all__ = ["Dataset", "FormatError", "Located", "Rejected", "load_dataset", "load_tasks"]
