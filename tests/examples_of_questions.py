"""One question of every type, made from the types of its fields: a new type needs no change here."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, get_type_hints

import adjudge.judges.judgment
import adjudge.scoring
from adjudge.judges import Context, Question

ITEMS = 4
REPORT = (
    "Cargo bikes carried 12% of the parcels in the inner city in 2024 [1]. Vans carried the rest [2]. "
    "Two depots were opened, and deliveries took 14 minutes less on average.\n"
) * 8
SOURCES = "\n".join(f"{number}: https://s{number}.example" for number in range(1, 1000))
TEXTS = {"dimension": "insight"}
CONTEXT = Context.of(task="How are parcels delivered in cities?", report=REPORT, article=REPORT, page=REPORT)
CONTEXTS = {
    "DeeperReport": Context.of(first=REPORT, second=SOURCES),
    "BetterReport": Context.of(first=REPORT, second=SOURCES),
    "CitedBy": Context.of(report=REPORT, sources=SOURCES),
    "Clean": Context.of(piece=REPORT),
}


def question_types() -> list[type[Question[Any]]]:
    """Every question type of every installed protocol, and the probe; base classes without a prompt left out."""
    for module in pkgutil.walk_packages(adjudge.scoring.__path__, "adjudge.scoring."):
        importlib.import_module(module.name)
    kinds = {kind.__name__: kind for kind in _below(Question)}
    ours = [
        kind for kind in kinds.values() if kind.__module__.startswith("adjudge.") and hasattr(kind, "prompt")
    ]
    return sorted(ours, key=lambda kind: kind.__name__)


def example(kind: type[Question[Any]], language: str = "en") -> Question[Any]:
    """A question of type `kind`."""
    hints = get_type_hints(kind)
    own = [name for name in kind.__struct_fields__ if name not in Question.__struct_fields__]
    fields = {name: _value(name, hints[name]) for name in own}
    return kind(context=CONTEXTS.get(kind.__name__, CONTEXT), language=language, **fields)


def _below(kind: type[Question[Any]]) -> Iterator[type[Question[Any]]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


def _value(name: str, kind: object) -> object:
    if kind is str:
        return TEXTS.get(name, f"The {name} says that cargo bikes carried 12% of the parcels.")
    if kind is int:
        return 1
    if kind == tuple[str, ...]:
        return tuple(f"Statement {number}: deliveries took {number} minutes." for number in range(ITEMS))
    if kind == tuple[float, ...]:
        return (0.0, 0.5, 1.0, 2.0)
    raise TypeError(f"{name}: no example of {kind}")
