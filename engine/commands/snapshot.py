"""`adjudge snapshot`: the pages that a run read, or those of a web archive, as a folder for `fetch: snapshot`."""

import argparse
import asyncio
from pathlib import Path

import msgspec

from adjudge.engine.commands.exits import DONE
from adjudge.engine.commands.output import out, print_result
from adjudge.engine.errors import UsageError, unwritable
from adjudge.engine.runs.run import Run
from adjudge.fetchers.files import own_files
from adjudge.fetchers.page import Page
from adjudge.fetchers.snapshot import SnapshotError, new_folder, write_pages
from adjudge.fetchers.warc import unpack_warc, write_warc
from adjudge.judges.plural import plural

WARC = "pages.warc.gz"


class SnapshotResult(msgspec.Struct, frozen=True, kw_only=True):
    """The new folder, how many pages it has, and the WARC file beside them, if there is one."""

    out: str
    pages: int
    warc: str | None = None


def snapshot(source: str | Path, out: str | Path, *, warc: bool = False) -> SnapshotResult:
    """Write the pages of `source`, a run's folder or a WARC file, into the new folder `out`.

    With `warc`, the pages of a run are written as a WARC file too. Raises UsageError, StoreError.
    """
    source, target = Path(source), Path(out)
    if source.is_file() and warc:
        raise UsageError(f"warc: {source} is a WARC file already; leave --warc out")
    try:
        pages = [] if source.is_file() else _of_run(source)
        new_folder(target)
        with own_files(target) as folder:
            if source.is_file():
                return SnapshotResult(out=str(target), pages=asyncio.run(unpack_warc(source, folder)))
            write_pages(pages, folder)
            if warc:
                write_warc(pages, folder / WARC)
        return SnapshotResult(out=str(target), pages=len(pages), warc=str(target / WARC) if warc else None)
    except ImportError as error:
        raise UsageError("warc: warcio is not installed; run pip install 'adjudge[warc]'") from error
    except SnapshotError as error:
        raise UsageError(f"snapshot: {error}") from error
    except OSError as error:
        raise UsageError(f"snapshot: {unwritable(error, target)}") from error


def _of_run(folder: Path) -> list[Page]:
    run = Run.open(folder)
    pages = run.pages_of(run.cards)
    if not pages:
        raise UsageError(f"snapshot: {folder} has read no pages that its store still holds")
    return list(pages.values())


def run(options: argparse.Namespace) -> int:
    """Write the pages of a run or a web archive as a snapshot."""
    print_result(options, snapshot(options.source, options.out, warc=options.warc), _print_pages)
    return DONE


def _print_pages(found: SnapshotResult) -> None:
    """Print where pages were written."""
    beside = f", and as {found.warc}" if found.warc else ""
    out().print(f"{plural(found.pages, 'page')} in {found.out}{beside}", markup=False, soft_wrap=True)
