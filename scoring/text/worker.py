"""A worker process that reads texts: it calls functions of this distribution (`scoring/text/aside.py`).

`python -P -m adjudge.scoring.text.worker ADDRESS_SPACE_BYTES`
"""

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from inspect import signature
from typing import get_type_hints

import msgspec

from adjudge.fetchers.process import answer_jobs, at_most, resident
from adjudge.scoring.text.aside import Answer, Call
from adjudge.scoring.text.citations import parse


def main(address_space: int) -> None:
    """Answer calls until stdin ends. `address_space` is a limit in bytes."""
    answer_jobs(_answer, address_space, lambda: parse("It is warm [1].\n\n[1]: https://warm.example"))


@cache
def _called(module: str, name: str) -> tuple[Callable[..., object], tuple[object, ...]]:
    """A function, and the types of its parameters: found once, which takes as long as reading a short text."""
    function = getattr(import_module(module), name)
    hints = get_type_hints(function)
    return function, tuple(hints[parameter] for parameter in signature(function).parameters)


def _answer(payload: bytes) -> bytes:
    call = msgspec.msgpack.decode(payload, type=Call)
    function, kinds = _called(call.module, call.name)
    arguments = msgspec.msgpack.decode(call.arguments)
    with at_most(call.seconds):
        value = function(*(msgspec.convert(one, kind) for one, kind in zip(arguments, kinds, strict=False)))
    return msgspec.msgpack.encode(Answer(msgspec.Raw(msgspec.msgpack.encode(value)), resident()))


if __name__ == "__main__":
    main(int(sys.argv[1]))
