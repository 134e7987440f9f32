"""Data to train a judge of one's own: questions as they were sent, and answers of a better judge or by people."""

import asyncio
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.commands.export import export_run
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.runs.run import Run
from tests.commands import one_line
from tests.commands import run as command
from tests.examples import evaluated, shipped
from tests.mock_openai import MockOpenAI
from tests.worlds import lines


@pytest.fixture(scope="module", params=["rubrics", "quickstart"])
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """The same reports judged by the embedded judge, and by a server."""
    folder = tmp_path_factory.mktemp("runs")
    own = evaluated(request.param, folder, "own")
    config, better = shipped(request.param) / "adjudge.yaml", folder / "better"

    async def judged() -> None:
        async with MockOpenAI() as mock:
            judge = f"openai:{mock.url}#mock"
            await evaluate_async(
                RunConfig.load(config, out=str(better), store=str(folder / "store"), judge=judge)
            )

    asyncio.run(judged())
    return Run.open(own), Run.open(better)


def rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {
        side: [json.loads(line) for line in (folder / f"{side}.jsonl").read_text().splitlines()]
        for side in ("train", "test")
    }


def split(found: dict[str, list[dict[str, Any]]]) -> None:
    """No task and no prompt is on both sides, and none is twice."""
    tasks = {side: {row["task_id"] for row in own} for side, own in found.items()}
    assert tasks["train"] and tasks["test"] and not tasks["train"] & tasks["test"]
    prompts = [json.dumps(row["prompt"]) for own in found.values() for row in own]
    assert len(prompts) == len(set(prompts))


def without_analysis(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_analysis(one) for name, one in value.items() if name != "analysis"}
    return [without_analysis(one) for one in value] if isinstance(value, list) else value


def answers_of(run: Run) -> list[Any]:
    found = run.judgments["answer"].to_pylist()
    return [without_analysis(json.loads(text)) for text in found if text]


def answer_in(message: list[dict[str, str]]) -> Any:
    (said,) = message
    assert said["role"] == "assistant"
    return without_analysis(json.loads(said["content"]))


def test_answers_of_a_stronger_judge_are_targets(runs: tuple[Run, Run], tmp_path: Path) -> None:
    own, better = runs
    export_run(own.folder, "judge-sft", tmp_path / "sft", better.folder)
    export_run(own.folder, "judge-preferences", tmp_path / "dpo", better.folder)
    sft, dpo = rows(tmp_path / "sft"), rows(tmp_path / "dpo")
    for found in (sft, dpo):
        split(found)
    stronger, weaker = answers_of(better), answers_of(own)
    for row in [*sft["train"], *sft["test"]]:
        assert [one["role"] for one in row["prompt"]] == ["system", "user"]
        assert answer_in(row["completion"]) in stronger
    for row in [*dpo["train"], *dpo["test"]]:
        assert answer_in(row["chosen"]) in stronger and answer_in(row["rejected"]) in weaker
        assert answer_in(row["chosen"]) != answer_in(row["rejected"])
    assert 0 < len(dpo["train"]) <= len(sft["train"])
    again = export_run(own.folder, "judge-sft", tmp_path / "again", better.folder)
    assert len(again.files) == 2 and rows(tmp_path / "again") == sft


def test_targets_have_the_numbers_of_the_schema(runs: tuple[Run, Run], tmp_path: Path) -> None:
    """A server that holds a judge to the schema lets it write `"points": 2` only."""
    own, better = runs
    export_run(own.folder, "judge-sft", tmp_path / "sft", better.folder)
    export_run(own.folder, "judge-preferences", tmp_path / "dpo", better.folder)
    for found in (rows(tmp_path / "sft"), rows(tmp_path / "dpo")):
        for row in [*found["train"], *found["test"]]:
            for (message,) in (row[name] for name in ("completion", "chosen", "rejected") if name in row):
                assert not re.search(r":-?\d+\.0[,}\]]", message["content"])


def labelled(run: Run, file: Path, right: float) -> tuple[Path, dict[str, bool]]:
    """Labels by people, who say what the judge says in the share `right`; by item, whether they do."""
    draw, agree = random.Random(0), {}
    written = []
    for item in run.items:
        agree[item.id] = draw.random() < right
        others = [label for label in item.labelled.kind.labels if label != item.labelled.label]
        label = item.labelled.label if agree[item.id] else draw.choice(others)
        written.append({"item": item.id, "label": label, "rater": "ann"})
    return lines(file, written), agree


def test_people_decide_which_answers_are_learnt(runs: tuple[Run, Run], tmp_path: Path) -> None:
    own, better = runs
    file, agree = labelled(own, tmp_path / "labels.jsonl", 0.6)
    export_run(own.folder, "judge-sft", tmp_path / "sft", labels=file)
    found = rows(tmp_path / "sft")
    split(found)
    confirmed: dict[str, bool] = {}
    for item in own.items:
        key = item.line.judgment
        confirmed[key] = confirmed.get(key, True) and agree[item.id]
    by_key = dict(zip(own.judgments["key"].to_pylist(), own.judgments["answer"].to_pylist(), strict=True))
    good = [without_analysis(json.loads(by_key[key])) for key, right in confirmed.items() if right]
    learnt = [answer_in(row["completion"]) for own_rows in found.values() for row in own_rows]
    assert learnt and all(one in good for one in learnt)
    export_run(own.folder, "judge-preferences", tmp_path / "dpo", better.folder, file)
    split(rows(tmp_path / "dpo"))


@pytest.mark.parametrize("form", ["judge-sft", "judge-preferences"])
def test_missing_targets_are_named(
    runs: tuple[Run, Run], tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = one_line(command(capsys, "export", runs[0].folder, "--format", form, "--out", tmp_path / "x")[2])
    assert f"format: {form} needs --other RUN" in said
    with pytest.raises(UsageError, match="only judge-sft and judge-preferences"):
        export_run(runs[0].folder, "scores", tmp_path / "y", runs[1].folder)
    with pytest.raises(UsageError, match="no question has"):
        # A judge's own answers are no better than themselves.
        file = lines(tmp_path / "labels.jsonl", [{"item": "v0", "label": "met"}])
        export_run(runs[0].folder, form, tmp_path / "z", runs[0].folder, file)


def test_trl_takes_the_rows(runs: tuple[Run, Run], tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    shapes = pytest.importorskip("trl.data_utils")
    own, better = runs
    for form, columns in (
        ("judge-sft", {"prompt", "completion"}),
        ("judge-preferences", {"prompt", "chosen", "rejected"}),
    ):
        out = tmp_path / form
        export_run(own.folder, form, out, better.folder)
        files = {side: str(out / f"{side}.jsonl") for side in ("train", "test")}
        found = datasets.load_dataset("json", data_files=files, cache_dir=str(tmp_path / "cache"))
        for side in files:
            assert columns <= {*found[side].column_names}
            assert shapes.is_conversational(found[side][0])
