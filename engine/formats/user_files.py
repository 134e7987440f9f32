"""The files that a user handed over with a task, as sources (DR3-Eval)."""

from collections.abc import Callable, Iterator
from pathlib import Path

from adjudge.engine.formats.dataset import FormatError
from adjudge.engine.formats.documents import DocumentError, MissingReader, read_source
from adjudge.engine.formats.rejected import Rejected
from adjudge.scoring.dr3_eval.sandbox import Source

__all__ = ["user_files"]


def user_files(
    folder: Path, rejected: list[Rejected], is_users: Callable[[Path], bool] = lambda file: True
) -> Iterator[Source]:
    """Every file of `folder` that `is_users`. One that cannot be read is rejected, but remains a source to cite.

    So is a link that leads out of the folder. Raises FormatError if the library that reads a file is not installed.
    """
    inside = folder.resolve()
    for file in sorted(folder.glob("*")):
        if file.name.startswith(".") or not file.is_file() or not is_users(file):
            continue
        try:
            if not file.resolve().is_relative_to(inside):
                raise DocumentError(f"{file}: is a link that leads out of its folder")
            yield read_source(file)
        except MissingReader as error:
            raise FormatError(str(error)) from error
        except DocumentError as error:
            rejected.append(Rejected(str(file), 0, str(error).removeprefix(f"{file}: ")))
            yield Source(name=file.name)
