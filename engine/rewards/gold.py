"""What a rollout brings to be judged by: its own gold, and rubrics in the shapes that data sets publish.

The rows of ResearchRubrics (`criterion`, `weight`, `axis`), HealthBench (`criterion`, `points`, `tags`), RaR
(`description`, `title`, `weight`) and DR Tulu (the same, with `rubrics_types` beside them) become criteria of the
protocol `rubrics`, as do plain texts. JSON text is read as what it holds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

__all__ = ["own_gold", "plain", "read_value"]

RUBRICS = "rubrics"
_TEXTS = ("criterion", "description", "requirement")
_POINTS = ("points", "weight")
_OWN = frozenset({"criterion", "points", "values", "tags", "id", "task"})
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
        return dict.fromkeys(protocols, INVALID)
    given = {str(name): read_value(value) for name, value in found.items() if value is not None}
    if RUBRICS not in given and "rubric" in given:
        given[RUBRICS] = given.pop("rubric")
    if (own := read_value(rubrics)) is not None:
        given[RUBRICS] = own
    if RUBRICS in given:
        given[RUBRICS] = _criteria(given[RUBRICS], given.get("rubrics_types"))
    return {name: _encoded(value) for name, value in given.items()}


def _criteria(rubrics: object, kinds: object) -> object:
    """Rubrics as criteria; what has another shape is left as it is, for the protocol to refuse."""
    if isinstance(rubrics, Mapping):
        rubrics = [rubrics]
    if not isinstance(rubrics, Sequence) or isinstance(rubrics, str):
        return rubrics
    listed = isinstance(kinds, Sequence) and not isinstance(kinds, str) and len(kinds) == len(rubrics)
    named: Sequence[object] = kinds if listed else [None] * len(rubrics)  # type: ignore[assignment]
    made = [_criterion(read_value(row), kind) for row, kind in zip(rubrics, named, strict=True)]
    return [row for row in made if row is not None]


def _criterion(row: object, kind: object) -> object:
    if isinstance(row, str):
        return {"criterion": row, "points": 1}
    if not isinstance(row, Mapping) or (row.keys() <= _OWN and kind is None):
        return row
    text = next((row[name] for name in _TEXTS if row.get(name)), None)
    points = next((row[name] for name in _POINTS if row.get(name) is not None), None)
    if points == 0:
        return None
    made: dict[str, object] = {
        "criterion": text,
        "tags": _tags(row, kind),
        "id": str(row.get("id") or row.get("title") or ""),
    }
    if row.get("values"):
        return {**made, "values": row["values"]}
    if kind is not None and isinstance(points, (int, float)):  # DR Tulu gives 0, 1 or 2, halved
        return {**made, "values": sorted({0.0, points / 2, float(points)})}
    return {**made, "points": points}


def _tags(row: Mapping[str, Any], kind: object) -> list[str]:
    given = row.get("tags")
    tags = [str(tag) for tag in given] if isinstance(given, (list, tuple)) else []
    return [*tags, *(str(one) for one in (row.get("axis"), kind) if one)]


def read_value(value: object) -> object:
    """`value`, or what it holds if it is JSON text; an array as the list it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return msgspec.json.decode(value)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return value
    return _listed(value) if hasattr(value, "tolist") else value


def _listed(value: Any) -> Any:
    return value.tolist()


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
