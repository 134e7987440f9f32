"""What a rollout brings to be judged by: its own gold, and rubrics in the shapes that data sets publish.

The shapes are those of `engine/formats/rubric_rows.py`. JSON text is read as what it holds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from adjudge.engine.formats.rubric_rows import as_criteria, read_value

__all__ = ["own_gold", "plain"]

RUBRICS = "rubrics"
INVALID = msgspec.Raw(b'"not JSON"')  # what no protocol can decode: gold_invalid


def own_gold(gold: object, rubrics: object, protocols: Sequence[str]) -> dict[str, msgspec.Raw]:
    """The gold of an item by protocol, encoded: that of `gold`, and `rubrics` as that of the protocol `rubrics`.

    `gold` that is a list is one of rubrics. What cannot be read is gold that no protocol can decode.
    """
    found = read_value(gold)
    if isinstance(found, Sequence) and not isinstance(found, str):
        found = {RUBRICS: found}
    if found is None:
        found = {}
    if not isinstance(found, Mapping):
        return dict.fromkeys((*protocols, RUBRICS), INVALID)
    given = {str(name): read_value(value) for name, value in found.items() if value is not None}
    if RUBRICS not in given and "rubric" in given:
        given[RUBRICS] = given.pop("rubric")
    if (own := read_value(rubrics)) is not None:
        given[RUBRICS] = own
    if RUBRICS in given:
        given[RUBRICS] = as_criteria(given[RUBRICS], given.get("rubrics_types"))
    return {name: _encoded(value) for name, value in given.items()}


def _encoded(value: object) -> msgspec.Raw:
    try:
        return msgspec.Raw(msgspec.json.encode(value, enc_hook=plain, order="deterministic"))
    except (TypeError, ValueError, RecursionError, OverflowError):  # what no JSON can say
        return INVALID


def plain(value: Any) -> Any:
    """An array of a data set as a list, for JSON. Raises TypeError."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is unknown to JSON")
