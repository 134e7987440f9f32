"""Case files of `golden/livedrbench`: the categories' rules with given matches and grades, and the averages."""

import asyncio
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from adjudge.judges import ScriptedJudge, numbered
from adjudge.scoring.answers.sameness import SameAs, Sameness, same_text
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.livedrbench.graded_slots import (
    Graded,
    Points,
    Rules,
    Same,
    count_fields,
    field_overlap,
    material_overlap,
    row_claims,
    slot_points,
)
from adjudge.scoring.livedrbench.livedr import Gold as LiveGold
from adjudge.scoring.livedrbench.livedr import averages, evaluate
from tests.conformance.case import Check, Checker, compare, read_lines
from tests.tools import DirectTools

PUBLISHED_DIGITS = 0.0011


def check_grades(path: Path) -> Iterator[Check]:
    for case in read_lines(path):
        if "judge_true_pairs_gold_pred" in case:
            yield _check_scifacts(case)
        elif "judge" in case:
            points = _points(case)
            overlap = msgspec.structs.asdict(points.overlap)
            counts = {"_score": points.right, "_pred_keys": points.predicted, "_gt_keys": points.gold}
            yield compare(case["case"], overlap | counts, case["expected"]["ok"])
        else:
            yield compare(case["case"], asyncio.run(_judged(case)), case["expected"]["ok"])


def check_averages(path: Path) -> Iterator[Check]:
    table = json.loads(path.read_text(encoding="utf-8"))
    for place, name in enumerate(("precision", "recall", "f1")):
        questions = [
            (category, figures[place])
            for category, figures in table["prec_rec_f1"].items()
            for _ in range(table["n_questions"][category])
        ]
        found = averages(questions)
        wanted = (table["published_average"][place], table["published_weighted_average"][place])
        got = (found.categories_mean, found.questions_mean)
        close = all(
            g is not None and math.isclose(g, w, abs_tol=PUBLISHED_DIGITS)
            for g, w in zip(got, wanted, strict=True)
        )
        yield name, close, f"{got}, published {wanted} to three digits"


def _check_scifacts(case: Mapping[str, Any]) -> Check:
    gold, predicted = case["ground_truths"][0], case["preds"][0]
    judged = {tuple(pair) for pair in case["judge_true_pairs_gold_pred"]}
    title = _same(gold, predicted, "paper_title", judged)
    materials = case["category"] == "scifacts-materials"
    material = _same(gold, predicted, "material", judged) if materials else None
    code = material_overlap(material, title, len(gold)) if material else field_overlap(title, len(gold))
    got, wanted = {"code": code}, {"code": case["expected_reference_code_on_preds0"]["ok"]}
    if "expected_paper_eq1_rowwise" in case:
        got["eq1"] = row_claims(title, material, len(gold), Rules()).overlaps()[0]
        wanted["eq1"] = case["expected_paper_eq1_rowwise"]
    return compare(case["case"], {name: msgspec.structs.asdict(found) for name, found in got.items()}, wanted)


def _same(gold: Sequence[Any], predicted: Sequence[Any], key: str, judged: set[tuple[str, ...]]) -> Same:
    return [
        [
            any(
                same_text(alias, row.get(key, "")) or (alias, row.get(key, "")) in judged
                for alias in entry[key]
            )
            for entry in gold
        ]
        for row in predicted
    ]


def _points(case: Mapping[str, Any]) -> Points:
    rules = msgspec.convert(case["eval_info"], Rules)
    objects, matches = iter(case["judge"].get("dict", [])), iter(case["judge"].get("rows", []))
    items = []
    for gold, predicted in zip(case["ground_truths"], case["preds"], strict=False):
        if isinstance(gold, dict):
            items.append(Graded(tuple(predicted), next(objects), tuple(gold), whole=True))
            continue
        for row in predicted:
            reply = next(matches)
            items.append(
                Graded(tuple(row), reply["scores"] if reply["match"] else None, tuple(reply["match"]))
            )
    return slot_points(items, count_fields(case["ground_truths"], rules), rules)


async def _judged(case: Mapping[str, Any]) -> Mapping[str, float]:
    """The whole evaluation of a list of names or titles, with the judge's matches given for each predicted row."""
    names = [row["title"] if isinstance(row, dict) else row for row in case["preds"][0]]
    says = dict(zip(names, case["judge_match_per_pred_row"], strict=True))

    def opinion(question: SameAs) -> Sameness:
        items = zip(numbered(question.count), question.references, strict=True)
        wanted = says[question.candidate]
        return Sameness(items={key: "same" if name == wanted else "different" for key, name in items})

    report = Report(task_id="1", system="s", text="-", answer=msgspec.Raw(msgspec.json.encode(case["preds"])))
    gold = LiveGold(
        category=case["category"], ground_truths=msgspec.Raw(msgspec.json.encode(case["ground_truths"]))
    )
    tools = DirectTools(ScriptedJudge(opinion))
    outcome = await evaluate(Case(task=Task(id="1", prompt="-"), report=report), gold, tools)
    return msgspec.structs.asdict(outcome.worst[0])


CHECKS: dict[str, Checker] = {
    "grade_cases.jsonl": check_grades,
    "paper_table2_openai_dr.json": check_averages,
}
DATA: tuple[str, ...] = ()
