"""A row of a data set: what it brings for its rollouts to be judged by, under the names that data sets use."""

from collections.abc import Mapping
from typing import Any

from adjudge.engine.formats.rubric_rows import read_value
from adjudge.engine.rewards.conversation import task_name

__all__ = ["NAMES", "brought", "labelled"]

# Not the fields `answer` and `trace` of an item: in a data set, an answer is mostly the right one, not the rollout's.
CARRIED = ("task_id", "language", "gold", "rubrics", "citations", "pages")
NAMES = (*CARRIED, "rubric", "ground_truth")
"""The columns that are read."""
_HEAVY = ("citations", "pages")  # which a single value beside a prompt does not hold


def brought(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an item that `row` has, as objects or as JSON text.

    RaR calls the rubrics `rubric`. DR Tulu keeps them as JSON in `ground_truth`, which elsewhere is the right answer:
    it counts only if it holds rubrics.
    """
    found = {name: row[name] for name in CARRIED if row.get(name) is not None}
    if "rubrics" not in found and row.get("rubric") is not None:
        found["rubrics"] = row["rubric"]
    if not found.keys() & {"gold", "rubrics"}:
        truth = read_value(row.get("ground_truth"))
        if isinstance(truth, Mapping) and ("rubrics" in truth or "rubric" in truth):
            found["gold"] = truth
    return found


def labelled(label: object) -> dict[str, Any]:
    """What the one value beside a prompt says: fields of a row, what the rollout is judged by, or the id of its task.

    An object with `task_id` or `gold` is a row; another object, a list, and the JSON text of either are gold.
    """
    found = read_value(label)
    if isinstance(found, Mapping) and ("task_id" in found or "gold" in found):
        return {name: value for name, value in brought(found).items() if name not in _HEAVY}
    return {"gold": found} if isinstance(found, (Mapping, list)) else {"task_id": task_name(found)}
