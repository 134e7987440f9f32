"""`adjudge view`: a run in local web pages."""

import argparse
from pathlib import Path

from adjudge.engine.commands.exits import DONE
from adjudge.engine.commands.output import out, print_result
from adjudge.engine.commands.progress import counted_on
from adjudge.engine.errors import UsageError
from adjudge.engine.tables.terminal import Terminal
from adjudge.engine.viewer.app import view
from adjudge.engine.viewer.export import Exported, export
from adjudge.judges.plural import plural


def run(options: argparse.Namespace) -> int:
    """Serve the viewer until interrupted, or write its pages."""
    labels = None if options.labels is None else Path(options.labels)
    if options.export is not None:
        if options.other is not None:
            raise UsageError("export: one run at a time; leave --other out")
        with counted_on(Terminal(stderr=True), "report") as step:
            written = export(
                options.run_folder,
                options.export,
                sources=options.with_pages,
                gold=options.with_gold,
                labels=labels,
                step=step,
            )
        print_result(options, written, _print_exported)
        return DONE
    if options.with_pages or options.with_gold:
        raise UsageError("with-pages, with-gold: need --export DIR; add it")
    view(options.run_folder, options.other, options.port, options.json, options.with_stdin, labels)
    return DONE


def _print_exported(found: Exported) -> None:
    """Print where pages were written, and what they leave out."""
    console = out()
    console.print(
        f"{plural(found.files, 'file')}, {found.bytes / 1e6:,.1f} MB: put {found.out} on any web host, or open "
        f"{Path(found.out) / 'index.html'}; search engines are asked not to list it",
        markup=False,
        soft_wrap=True,
    )
    for line in found.left_out:
        console.print(f"left out: {line}", markup=False, soft_wrap=True)
