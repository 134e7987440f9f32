"""Case files of `golden/race`: RACE's weighting, its aggregation, its gold, and real systems' published results."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.deepresearch_bench.race import dimension_score, pointwise, relative, total
from adjudge.scoring.deepresearch_bench.yardstick import DIMENSIONS, RaceGold, average_weights
from adjudge.scoring.kernels.resampling.bootstrap import bootstrap
from tests.conformance.case import Check, Checker, compare, read_lines


def check_pairs(path: Path) -> Iterator[Check]:
    """A judge's reply on two articles -> dimensions, totals and the final scores."""
    golds = _golds(path.with_name("tickr_criteria.jsonl"))
    for case in read_lines(path):
        gold = golds[case["criteria_id"]]
        sides = {
            side: {
                name: _dimension(case["judge_json"], gold, name, f"article_{number}_score")
                for name in DIMENSIONS
            }
            for number, side in ((1, "target"), (2, "reference"))
        }
        totals = {side: total(dimensions, gold.dimension_weight or {}) for side, dimensions in sides.items()}
        final = {name: relative(sides["target"][name], sides["reference"][name]) for name in DIMENSIONS}
        actual = {
            "target_dims": _published_names(sides["target"]),
            "reference_dims": _published_names(sides["reference"]),
            "target_total": totals["target"],
            "reference_total": totals["reference"],
            "final": {"overall_score": relative(totals["target"], totals["reference"]), **final},
        }
        yield compare(case["case"], actual, case["expected"])


def check_single_articles(path: Path) -> Iterator[Check]:
    """A judge's reply on one article -> dimensions and total from 0 to 10, and the pointwise scores."""
    golds = _golds(path.with_name("tickr_criteria.jsonl"))
    for case in read_lines(path):
        gold = golds[case["criteria_id"]]
        dimensions = {name: _dimension(case["judge_json"], gold, name, "target_score") for name in DIMENSIONS}
        whole = total(dimensions, gold.dimension_weight or {})
        shares = {name: pointwise(score) for name, score in dimensions.items()}
        actual = {
            "expected_dims": dimensions,
            "expected_total": whole,
            "expected_pointwise": {**shares, "overall_score": pointwise(whole)},
        }
        yield compare(str(case["id"]), actual, {name: case[name] for name in actual})


def check_results(path: Path) -> Iterator[Check]:
    """A system's scores per task -> its means; without expected means, the overall score from the dimensions."""
    rows = list(read_lines(path))
    expected = path.with_name(
        path.name.removesuffix(".jsonl").removesuffix("_raw_results") + ".expected.json"
    )
    if expected.is_file():
        wanted = json.loads(expected.read_text(encoding="utf-8"))
        names = [name for name in rows[0] if name != "id"]
        scores = [[math.nan if row[name] is None else row[name] for row in rows] for name in names]
        actual = dict(zip(names, bootstrap(scores, resamples=1).estimate.tolist(), strict=True))
        yield compare("n", len(rows), wanted["n"])
        for name, value in wanted["mean"].items():
            yield compare(f"mean {name}", actual[name], value)
        for name, shown in wanted.get("rounded_4dp", {}).items():
            yield compare(f"rounded {name}", f"{actual[name]:.4f}", shown)
        return
    golds = _golds(path.with_name(f"{path.name.split('_')[0]}_criteria.jsonl"))
    for row in rows:
        weights = golds[row["id"]].dimension_weight or {}
        yield compare(
            str(row["id"]), total({name: row[name] for name in DIMENSIONS}, weights), row["overall_score"]
        )


def check_criteria(path: Path) -> Iterator[Check]:
    """Published gold: accepted by RACE, every group of weights sums to 1, 4 to 10 criteria per dimension."""
    for number, gold in _golds(path).items():
        criteria = gold.criterions or {}
        sums = [math.fsum((gold.dimension_weight or {}).values())]
        sums += [math.fsum(one.weight for one in criteria[name]) for name in DIMENSIONS]
        counts = [4 <= len(criteria[name]) <= 10 for name in DIMENSIONS]
        yield compare(f"{path.stem} {number}", [sums, counts], [[1.0] * 5, [True] * 4])


def check_weight_draws(path: Path) -> Iterator[Check]:
    """Five draws of the dimension weights -> the weights used."""
    for number, case in enumerate(read_lines(path), 1):
        yield compare(str(number), average_weights(case["samples"]), case["expected"])


def _golds(path: Path) -> dict[int, RaceGold]:
    found = {}
    for row in read_lines(path):
        gold = {"race": msgspec.Raw(msgspec.json.encode(row))}
        task = Task(id=str(row["id"]), prompt=row["prompt"], gold=gold)
        found[row["id"]] = RaceGold.of(Case(task=task, report=Report(task_id=task.id, system="", text="")))
    return found


def _dimension(reply: dict[str, Any], gold: RaceGold, name: str, field: str) -> float:
    scored = [(item["criterion"], item[field]) for item in reply[name]]
    return dimension_score(scored, (gold.criterions or {})[name])


def _published_names(dimensions: dict[str, float]) -> dict[str, float]:
    return {f"{name}_weighted_avg": score for name, score in dimensions.items()}


CHECKS: dict[str, Checker] = {
    "pairwise_weighting_cases*.jsonl": check_pairs,
    "*_pointwise.jsonl": check_single_articles,
    "*_raw_results.jsonl": check_results,
    "onyx_run_*.jsonl": check_results,
    "*_criteria.jsonl": check_criteria,
    "dimension_weight_averaging*.jsonl": check_weight_draws,
}
DATA: tuple[str, ...] = ("drb_query.jsonl",)
