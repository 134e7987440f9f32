"""What all settings share: their error, the kinds of numbers they take, plug-ins, and mistakes in words.

`ConfigError`, which every unusable setting raises.

The kinds of numbers that settings take.

What packages from outside register under our entry points: their code runs here first, and may be broken.

What is wrong with a value of the configuration, in words: key, problem, and the nearest keys that there are.
"""

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec
from msgspec import inspect

from adjudge.engine.errors import UsageError, nearest, unloadable

__all__ = ["ConfigError", "Count", "NotNegative", "Positive", "Seconds", "mistake", "plugin"]


class ConfigError(UsageError):
    """A configuration cannot be used: the key or place, the problem, and what to do, in one line."""


Count = Annotated[int, msgspec.Meta(ge=1, le=10**15)]
NotNegative = Annotated[float, msgspec.Meta(ge=0, le=1e300)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e300)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e9)]  # finite: no clock waits for ever


def plugin(key: str, name: str, load: Callable[[], Any]) -> Any:
    """What `load` gives for the entry `name` of the key `key`. Raises ConfigError if its package cannot be imported."""
    try:
        return load()
    except Exception as error:  # importing runs code that is not ours
        raise ConfigError(unloadable(key, name, error)) from error


_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_NONE_OF = re.compile(r"Invalid enum value (.*)", re.DOTALL)
_OTHER_KIND = re.compile(r"Expected `([a-z |]+)`, got `([a-z]+)`")
_BOUND = re.compile(r"Expected `(int|float)` (>=|>|<=|<) (-?[0-9.e+]+)")
_LACKS = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[[^\[\]]*\]")
_KINDS = {
    "object": "a mapping",
    "array": "a list",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "nothing",
}
"""What msgspec calls the kinds of values, in words."""
_BOUNDS = {">=": "of at least", ">": "above", "<=": "of at most", "<": "below"}


def mistake(error: msgspec.ValidationError, kind: Any, data: object) -> str:
    """What msgspec says of `data` that are not of type `kind`: `fetch.mode: 'x' is unknown; use 'live' or 'off'`."""
    said = str(error).replace(" - at `key` in `$", " as a key - at `$")
    text, _, at = said.rpartition(" - at `$")
    text, path = (text, at.rstrip("`")) if text else (at, "")
    key = path.lstrip(".")
    if unknown := _UNKNOWN.fullmatch(text):
        whole = f"{key}.{unknown[1]}" if key else unknown[1]
        return f"{whole}: unknown key; {nearest(unknown[1], _keys(kind, path))}"
    said = f"{_in_words(text, kind, path)}{_not(data, path) if _BOUND.fullmatch(text) else ''}"
    return f"{key}: {said}" if key else said


def _in_words(text: str, kind: Any, path: str) -> str:
    """What msgspec's `text` says about the value at `path`, with what may stand there."""
    values = [str(one) for found in _at(kind, path) for one in _values(found)]
    if (chosen := _NONE_OF.fullmatch(text)) and values:
        return f"{chosen[1]} is unknown; use {' or '.join(map(repr, dict.fromkeys(values)))}"
    if lacking := _LACKS.fullmatch(text):
        return f"lacks {lacking[1]}:, which must be given"
    if other := _OTHER_KIND.fullmatch(text):
        wanted = " or ".join(_KINDS.get(one, one) for one in other[1].split(" | ") if one != "null")
        keys = _keys(kind, path) if "object" in other[1] else []
        some = f" with {', '.join(f'{one}:' for one in keys)}" if 0 < len(keys) <= _SHOWN else ""
        return f"must be {wanted}{some}, not {_KINDS.get(other[2], other[2])}"
    if bound := _BOUND.fullmatch(text):
        return f"must be {_KINDS[bound[1]]} {_BOUNDS[bound[2]]} {bound[3].removesuffix('.0')}"
    return text


def _not(data: object, path: str) -> str:
    """The number at `path` in `data`, in words; none if it stands in what has no path."""
    for step in _STEP.finditer(path):
        if isinstance(data, dict):
            data = data.get(step[1])
        elif isinstance(data, list) and step[0][1:-1].isdigit():
            data = data[int(step[0][1:-1])]
    return f", not {data}" if isinstance(data, int | float) else ""


_SHOWN = 8  # keys that a message names


def _at(kind: Any, path: str) -> list[inspect.Type]:
    """The types that the value at `path` in a value of type `kind` may have."""
    kinds = [inspect.type_info(kind)]
    for step in _STEP.finditer(path):
        kinds = [found for one in kinds for found in _inside(one, step[1])]
    return kinds


def _keys(kind: Any, path: str) -> list[str]:
    """The keys of what stands at `path` in a value of type `kind`."""
    fields = (field for one in _at(kind, path) for struct in _structs(one) for field in struct.fields)
    return sorted({field.encode_name for field in fields})


def _values(kind: inspect.Type) -> Iterator[object]:
    """The values that a value of type `kind` is one of."""
    match kind:
        case inspect.UnionType():
            for one in kind.types:
                yield from _values(one)
        case inspect.LiteralType():
            yield from kind.values


def _inside(kind: inspect.Type, name: str | None) -> Iterator[inspect.Type]:
    """The types of the field `name` of `kind`, or without a name those of its items."""
    match kind:
        case inspect.UnionType():
            for one in kind.types:
                yield from _inside(one, name)
        case inspect.StructType() if name is not None:
            yield from (field.type for field in kind.fields if field.encode_name == name)
        case inspect.DictType():
            yield kind.value_type
        case inspect.ListType() | inspect.VarTupleType() if name is None:
            yield kind.item_type


def _structs(kind: inspect.Type) -> Iterator[inspect.StructType]:
    match kind:
        case inspect.UnionType():
            for one in kind.types:
                yield from _structs(one)
        case inspect.StructType():
            yield kind
