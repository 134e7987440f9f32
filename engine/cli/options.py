"""Options of the command line: their types, and the configuration with the given options applied.

An invalid value is a usage error that says what is expected.
"""

import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Any

from adjudge.engine.commands.gold_check import check_config
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError

__all__ = [
    "add_select",
    "cluster_section",
    "count",
    "gold_config",
    "port",
    "positive",
    "run_config",
    "select_section",
    "share",
]


def port(text: str) -> int:
    """A TCP port, 0 for any free one."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= 65_535):
        raise ArgumentTypeError(f"{text!r} is not a port, 0 to 65535")
    return int(text)


def count(text: str) -> int:
    """A whole number from 1."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 18 and int(text)):
        raise ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def positive(text: str) -> float:
    """A finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def share(text: str) -> float:
    """A number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return number


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


def gold_config(options: Namespace) -> RunConfig:
    """The configuration for `gold`: the file's under one protocol, or a file of tasks alone. Raises UsageError."""
    changed: dict[str, Any] = {
        "store": options.store,
        "judge": options.judge,
        "prompts": options.prompts,
        "format": options.format,
        "select": select_section(options),
        "protocols": None if options.protocol is None else [options.protocol],
    }
    if options.config is None:
        if not options.check:
            raise UsageError("gold: no configuration; name a CONFIG, or a file of tasks with --check FILE")
        return check_config(options.check, **changed)
    if options.protocol is None:
        raise UsageError("--protocol: is missing; name the protocol whose gold it is, such as race")
    if options.check:
        changed["tasks"], changed["format"] = options.check, "adjudge"
    return RunConfig.load(options.config, **changed)


def add_select(command: ArgumentParser) -> None:
    """The options that choose tasks and systems."""
    command.add_argument("--limit", type=count, metavar="N", help="only the first N tasks that are chosen")
    command.add_argument("--task", nargs="+", metavar="ID", help="only these tasks")
    command.add_argument("--system", nargs="+", metavar="NAME", help="only these systems")
    command.add_argument("--language", nargs="+", metavar="LANG", help="only tasks in these languages")
    command.add_argument("--domain", nargs="+", metavar="NAME", help="only tasks of these domains")


def select_section(options: Namespace) -> dict[str, Any]:
    """What the options of `add_select` change of the section `select:`."""
    given = {
        "limit": options.limit,
        "tasks": options.task,
        "systems": options.system,
        "languages": options.language,
        "domains": options.domain,
    }
    return {name: value for name, value in given.items() if value is not None}


def cluster_section(options: Namespace) -> dict[str, str] | None:
    """What `--cluster` changes of the section `cluster:`."""
    return None if options.cluster is None else {"address": options.cluster}
