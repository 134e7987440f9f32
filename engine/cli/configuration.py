"""The configuration that a command runs with: the file, changed by the options given."""

from argparse import Namespace
from typing import Any

from adjudge.engine.config.run import RunConfig

__all__ = ["cluster_section", "run_config", "select_section"]


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
