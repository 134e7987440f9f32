"""`adjudge serve`: rewards over HTTP."""

import argparse

from adjudge.engine.commands.exits import DONE
from adjudge.engine.commands.output import cluster_section
from adjudge.engine.config.run import RunConfig
from adjudge.engine.serving.server import serve


def run(options: argparse.Namespace) -> int:
    """Serve rewards until terminated."""
    config = RunConfig.load(
        options.config, store=options.store, judge=options.judge, cluster=cluster_section(options)
    )
    serve(config, options.host, options.port, options.json)
    return DONE
