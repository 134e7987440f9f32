"""Case files of `golden/rubrics`: tasks in a benchmark's published layout, a judge's verdicts, and the figures."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from adjudge.engine.config.run import RunConfig
from adjudge.engine.formats.dataset import load_dataset
from adjudge.judges import ScriptedJudge, numbered
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.protocol import score_case
from adjudge.scoring.contract.scorecard import Metric
from adjudge.scoring.rubrics.asking import Explained, ExplainedLevels, PointsGiven, RubricPoints
from adjudge.scoring.rubrics.keypoints import KeyPoints, PointsMade, PointVerdicts
from adjudge.scoring.rubrics.tree import Tree
from tests.conformance.case import Check, Checker, compare
from tests.tools import DirectTools


def check_set(path: Path) -> Iterator[Check]:
    """Every report's figures, and every system's means as a leaderboard takes them."""
    given = json.loads(path.read_text(encoding="utf-8"))
    (protocol,) = RunConfig.of({"tasks": "t", "protocols": [given["protocol"]]}).resolved.protocols
    metrics: dict[str, Metric] = {}
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for case in cases(given):
        system, task = case.report.system, case.task.id
        verdicts = given["given"][system][task][case.repeat]
        card = asyncio.run(score_case(protocol, case, DirectTools(ScriptedJudge(Verdicts(verdicts)))))
        metrics |= {metric.name: metric for metric in protocol.metrics_of(case)}
        for name, value in card.scores.items():
            found[system, name].append(float("nan") if value is None else value)
        expected = given["expected"][system][task][case.repeat]
        yield compare(f"{system}, task {task}, pass {case.repeat}", card.scores, expected)
    for system, means in given["means"].items():
        held = {name: _held(metrics[name], mean(found[system, name])) for name in means}
        yield compare(f"{system}, means", held, means)


def cases(given: dict[str, Any]) -> list[Case]:
    """The cases of the file's rows, written in the published layout, with a report of every system."""
    with TemporaryDirectory() as folder:
        tasks, reports = Path(folder) / given["file"], Path(folder) / "reports.jsonl"
        text = given.get("text", "A report.")
        rows = [
            {"task_id": task, "system": system, "text": text}
            for system, tasks_of in given["given"].items()
            for task in tasks_of
        ]
        for file, lines in ((tasks, given["rows"]), (reports, rows)):
            file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        dataset = load_dataset(given["format"], str(tasks), [str(reports)])
        assert not dataset.rejected, dataset.rejected
        passes = max(len(one) for tasks_of in given["given"].values() for one in tasks_of.values())
        return list(dataset.cases(passes))


class Verdicts:
    """Gives the criteria these verdicts in their order: the share that is met, or -1 for what rests on a block."""

    def __init__(self, verdicts: Sequence[float]) -> None:
        self._left = list(verdicts)

    def __call__(self, question: Any) -> Any:
        if isinstance(question, RubricPoints):
            ordered = sorted(question.values, key=abs)
            return PointsGiven(points=ordered[round(self._left.pop(0) * (len(ordered) - 1))])
        taken = [self._left.pop(0) for _ in question.items]
        items = [Explained(evidence="", level=float(level)) for level in taken]
        return ExplainedLevels(items=dict(zip(numbered(len(items)), items, strict=True)))


def _held(metric: Metric, value: float) -> float:
    return value if metric.clip is None else min(max(value, metric.clip[0]), metric.clip[1])


def check_trees(path: Path) -> Iterator[Check]:
    """The figures of trees whose leaves are met or not."""
    for given in json.loads(path.read_text(encoding="utf-8")):
        yield _alone(Tree(), "tree", given["tree"], Verdicts(given["met"]), given)


def check_keypoints(path: Path) -> Iterator[Check]:
    """The figures of key points by what a report does with each."""
    for given in json.loads(path.read_text(encoding="utf-8")):
        left = list(given["given"])

        def told(question: PointsMade, left: list[str] = left) -> PointVerdicts:
            taken = [left.pop(0) for _ in question.points]
            return PointVerdicts(items=dict(zip(numbered(len(taken)), taken, strict=True)))

        yield _alone(KeyPoints(), "keypoints", given["points"], told, given)


def _alone(protocol: Any, name: str, gold: object, opinions: Any, given: dict[str, Any]) -> Check:
    raw = {name: msgspec.Raw(msgspec.json.encode(gold))}
    case = Case(
        task=Task(id="1", prompt="?", gold=raw), report=Report(task_id="1", system="A", text="A report.")
    )
    card = asyncio.run(score_case(protocol, case, DirectTools(ScriptedJudge(opinions))))
    return compare(given["case"], card.scores, given["expected"])


FILES = ("draco.json", "researchrubrics_*.json", "healthbench.json", "drb2.json", "rler.json")
CHECKS: dict[str, Checker] = {
    **dict.fromkeys(FILES, check_set),
    "tree.json": check_trees,
    "keypoints.json": check_keypoints,
}
DATA: tuple[str, ...] = ()
