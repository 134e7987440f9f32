"""The prompts that a run's protocols ask with, among all that its record lists."""

from importlib import import_module
from types import ModuleType

from adjudge.engine.config.protocols import protocol_loaders
from adjudge.engine.records.record import RunRecord
from adjudge.judges import Question

__all__ = ["own_prompts"]

_OF_ALL = "preamble"  # the first words of every prompt


def own_prompts(record: RunRecord) -> dict[str, str]:
    """File name to digest of the prompts that the run's protocols may send, and of those of published calls.

    Where a protocol is not installed here, all that are recorded.
    """
    loaders, published = protocol_loaders(), record.config.published_protocols()
    if not record.metrics.keys() <= loaders.keys():
        return record.prompts
    names = {_OF_ALL}
    for protocol in record.metrics:
        if protocol not in published:
            names |= _prompts_of(loaders[protocol]())
    return {
        file: digest
        for file, digest in record.prompts.items()
        if not file.endswith(".md") or file.partition(".")[0] in names
    }


def _prompts_of(protocol: type) -> set[str]:
    """The prompts of the questions that a protocol's module, or a module that it takes something from, knows."""
    inside = (protocol.__module__.rpartition(".")[0] or protocol.__module__, "adjudge.scoring.")
    names: set[str] = set()
    seen: set[str] = set()
    waiting = [protocol.__module__]
    while waiting:
        name = waiting.pop()
        if name in seen or not name.startswith(inside):
            continue
        seen.add(name)
        for value in vars(import_module(name)).values():
            if isinstance(value, type) and issubclass(value, Question):
                names.add(getattr(value, "prompt", ""))
            found = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            waiting += [found] if isinstance(found, str) else []
    return names
