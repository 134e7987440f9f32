"""`adjudge label`: verdicts labelled by people."""

import argparse

from adjudge.engine.commands.exits import DONE
from adjudge.engine.commands.output import out, print_result
from adjudge.engine.errors import UsageError
from adjudge.engine.viewer.labelling import label, write_sheet
from adjudge.judges.plural import plural


def run(options: argparse.Namespace) -> int:
    """Serve the page to label verdicts on until interrupted, or write a table of them."""
    if options.out.endswith(".csv"):
        if options.edit is not None:
            raise UsageError(
                "edit: overrides are not written to a table; name another file than .csv with --out"
            )
        number = write_sheet(options.run_folder, options.out, options.sample, options.rater)
        print_result(options, {"out": options.out, "items": number}, _print_sheet)
    else:
        label(
            options.run_folder,
            options.out,
            options.sample,
            options.rater,
            options.overlap,
            options.port,
            options.edit,
            options.json,
        )
    return DONE


def _print_sheet(found: dict[str, str | int]) -> None:
    """Print where a table of verdicts to label was written, and what to do with it."""
    out().print(
        f"{plural(int(found['items']), 'verdict')} to label in {found['out']}: "
        "fill in the column label, then pass the file to adjudge agreement --labels",
        markup=False,
        soft_wrap=True,
    )
