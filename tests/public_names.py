"""The names that the versioning policy covers (docs/versioning.md), as sets by kind.

python -m tests.public_names      write tests/public_names.json, at a release
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import msgspec

import adjudge
from adjudge import scoring
from adjudge.engine.commands.parser import parser
from adjudge.engine.config.protocols import protocol_loaders
from adjudge.engine.config.run import RunConfig
from adjudge.engine.store.upkeep import TABLES
from adjudge.scoring.contract.reasons import CAUSES

RELEASED = Path(__file__).with_name("public_names.json")


def public_names() -> dict[str, list[str]]:
    """Every covered name, sorted, by kind."""
    return {
        "python": sorted(
            [f"adjudge.{name}" for name in adjudge.__all__]
            + [f"adjudge.scoring.{name}" for name in scoring.__all__]
        ),
        "commands": sorted(_options(parser(), "adjudge")),
        "keys": sorted(_keys(RunConfig, "")),
        "metrics": sorted(
            f"{name}.{metric.name}"
            for name, load in protocol_loaders().items()
            for metric in load()().metrics
        ),
        "reasons": sorted(CAUSES),
        "store": sorted(f"{kind.name}.{column}" for kind in TABLES for column in kind.schema.names),
    }


def _options(command: argparse.ArgumentParser, name: str) -> Iterator[str]:
    yield name
    for one in command._actions:
        if isinstance(one, argparse._SubParsersAction):
            for word, inner in one.choices.items():
                yield from _options(inner, f"{name} {word}")
        elif one.help != argparse.SUPPRESS:
            yield from (f"{name} {option}" for option in one.option_strings)


def _keys(kind: type[msgspec.Struct], before: str) -> Iterator[str]:
    for field in msgspec.structs.fields(kind):
        name = f"{before}{field.encode_name}"
        yield name
        for held in (field.type, *getattr(field.type, "__args__", ())):
            if isinstance(held, type) and issubclass(held, msgspec.Struct) and held is not kind:
                yield from _keys(held, f"{name}.")


if __name__ == "__main__":
    RELEASED.write_bytes(msgspec.json.format(msgspec.json.encode(public_names()), indent=1) + b"\n")
