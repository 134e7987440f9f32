"""What commands take and give: a configuration changed by options, and results as text, JSON or Markdown."""

import argparse
import sys
from argparse import Namespace
from collections.abc import Callable
from typing import Any, TypeVar

from adjudge.engine.config.redaction import printable, printable_json
from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.board import only_in_parquet
from adjudge.engine.tables.markdown import as_markdown
from adjudge.engine.tables.table import Table
from adjudge.engine.tables.terminal import Terminal, on_terminal


def run_config(options: Namespace) -> RunConfig:
    """The configuration for `evaluate` and `plan`. Raises UsageError."""
    config = RunConfig.load(
        options.config,
        out=options.out,
        store=options.store,
        judge=options.judge,
        prompts=options.prompts,
        format=options.format,
        select=select_section(options),
        protocols=options.protocol,
        fetch=None if options.fetch is None else {"mode": options.fetch},
        cluster=cluster_section(options),
        repeats=options.repeats,
        retry_unscored=options.retry_unscored or None,
        serial=options.serial or None,
        until_resolved=getattr(options, "until_resolved", None),
    )
    return config if options.budget is None else config.with_budget(options.budget)


def select_section(options: Namespace) -> dict[str, Any]:
    """Changes to the section `select:` by the options of `add_select`."""
    given = {
        "limit": options.limit,
        "tasks": options.task,
        "systems": options.system,
        "languages": options.language,
        "domains": options.domain,
    }
    return {name: value for name, value in given.items() if value is not None}


def cluster_section(options: Namespace) -> dict[str, str] | None:
    """Changes to the section `cluster:` by `--cluster`."""
    return None if options.cluster is None else {"address": options.cluster}


_PIPE_WIDTH = 400

T = TypeVar("T")


def out() -> Terminal:
    """Stdout; what is not a terminal is given long lines."""
    console = Terminal(highlight=False)
    return console if console.is_terminal else Terminal(highlight=False, width=_PIPE_WIDTH)


def print_result(options: argparse.Namespace, result: object, people: Callable[..., None]) -> None:
    """Print a result by `people`, or as JSON where that was asked for."""
    if options.json:
        sys.stdout.write(printable_json(result, only_in_parquet) + "\n")
    else:
        people(result)


def print_as_table(
    options: argparse.Namespace,
    result: T,
    people: Callable[[T], Table],
    sentence: Callable[[T], str] = lambda _: "",
) -> None:
    """Print a result as a table with a sentence, as Markdown or as JSON."""
    if options.markdown:
        sys.stdout.write(printable(as_markdown(people(result), sentence(result))))
    else:
        print_result(options, result, lambda found: print_table(people(found), sentence(found)))


def print_table(found: Table, said: str = "") -> None:
    """Print a table, and a sentence underneath."""
    console = out()
    console.print(on_terminal(found, console.width))
    if said:
        console.print(said, markup=False, soft_wrap=True)
