"""Rubrics in the shapes that data sets publish, as criteria of the protocols that score by them.

The rows of ResearchRubrics (`criterion`, `weight`, `axis`), HealthBench (`criterion`, `points`, `tags`), DRACO
(`requirement`, `weight`, `id`), RaR (`description`, `title`, `weight`) and DR Tulu (the same, with `rubrics_types`
beside them) are recognised, as are plain texts. JSON text is decoded.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

_TEXTS = ("criterion", "criterion_text", "description", "requirement")
_POINTS = ("points", "weight")
_OWN = frozenset({"criterion", "points", "values", "tags", "id", "task"})


def as_criteria(rubrics: object, kinds: object = None) -> object:
    """Rubrics as criteria, without those of weight 0; what has another shape is left as it is, to be refused.

    `kinds`, where there is one for each, are tags of theirs; such rubrics are given 0, 1 or 2, halved.
    """
    if isinstance(rubrics, Mapping):
        rubrics = [rubrics]
    if not isinstance(rubrics, Sequence) or isinstance(rubrics, str):
        return rubrics
    listed = isinstance(kinds, Sequence) and not isinstance(kinds, str) and len(kinds) == len(rubrics)
    named: Sequence[object] = kinds if listed else [None] * len(rubrics)  # type: ignore[assignment]
    made = [_criterion(read_value(row), kind) for row, kind in zip(rubrics, named, strict=True)]
    return [row for row in made if row is not None]


def read_value(value: object) -> object:
    """`value`, or what it holds if it is JSON text; an array as the list it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return msgspec.json.decode(value)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return value
    return value.tolist() if hasattr(value, "tolist") else value


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
