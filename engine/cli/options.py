"""Options of the command line: their types, and the configuration with the given options applied.

An invalid value is a usage error that says what is expected.
"""

import math
from argparse import ArgumentTypeError, Namespace

from adjudge.engine.config.run import RunConfig

__all__ = ["cluster_section", "port", "positive", "run_config"]


def port(text: str) -> int:
    """A TCP port, 0 for any free one."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= 65_535):
        raise ArgumentTypeError(f"{text!r} is not a port, 0 to 65535")
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


def run_config(options: Namespace) -> RunConfig:
    """The configuration for `evaluate` and `plan`. Raises UsageError."""
    return RunConfig.load(
        options.config,
        out=options.out,
        store=options.store,
        judge=options.judge,
        prompts=options.prompts,
        format=options.format,
        protocols=options.protocol,
        fetch=None if options.fetch is None else {"mode": options.fetch},
        cluster=cluster_section(options),
        repeats=options.repeats,
        retry_unscored=options.retry_unscored or None,
        serial=options.serial or None,
        until_resolved=getattr(options, "until_resolved", None),
    )


def cluster_section(options: Namespace) -> dict[str, str] | None:
    """What `--cluster` changes of the section `cluster:`."""
    return None if options.cluster is None else {"address": options.cluster}
