"""`adjudge doctor`: what is installed, reachable and missing."""

import argparse
from collections.abc import Iterable

from rich.markup import escape

from adjudge.engine.cli.exits import DONE, FAILED
from adjudge.engine.cli.printing import out, print_result
from adjudge.engine.commands.doctor import Finding, examine
from adjudge.engine.config.run import RunConfig

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Check the installation."""
    findings = examine(None if options.config is None else RunConfig.load(options.config))
    print_result(options, findings, _print_findings)
    return DONE if all(finding.good for finding in findings) else FAILED


def _print_findings(found: Iterable[Finding]) -> None:
    """Print the doctor's findings."""
    console = out()
    for finding in found:
        mark = "[green]ok[/]" if finding.good else "[red]no[/]"
        fix = (
            f"  -> {finding.fix}"
            if finding.fix and (not finding.good or finding.found == "not installed")
            else ""
        )
        console.print(f"{mark}  {escape(finding.what)}: {escape(finding.found)}{escape(fix)}", soft_wrap=True)
