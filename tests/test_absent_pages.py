"""What a snapshot lacks is said before anything is judged."""

import json
import logging
from pathlib import Path

import pytest

from adjudge.engine.runs.lacking import LackingGold
from tests.commands import run
from tests.worlds import lines

HELD = "https://held.example/a"


def written(folder: Path, cited: list[str], mode: str = "snapshot") -> str:
    lines(folder / "tasks.jsonl", [{"id": "1", "prompt": "Trams?"}])
    marks = "".join(f"Trams run on line {number} every day [{number}]. " for number, _ in enumerate(cited, 1))
    listed = "\n".join(f"[{number}] Page. {url}" for number, url in enumerate(cited, 1))
    lines(
        folder / "reports.jsonl",
        [{"task_id": "1", "system": "s", "text": f"{marks}\n\n## References\n{listed}\n"}],
    )
    (folder / "frozen").mkdir()
    (folder / "frozen" / "a.txt").write_text("Trams run on line 1 every day.")
    lines(folder / "frozen" / "index.jsonl", [{"url": HELD, "file": "a.txt"}])
    config = {
        "tasks": "tasks.jsonl",
        "reports": ["reports.jsonl"],
        "protocols": [{"name": "fact", "extraction": "markers"}],
        "judge": {"backend": "lexical"},
        "fetch": {"mode": mode, **({"snapshot": "frozen"} if mode == "snapshot" else {})},
        "store": "store",
        "out": "run",
    }
    (folder / "adjudge.yaml").write_text(json.dumps(config))
    return str(folder / "adjudge.yaml")


def test_plan_and_evaluate_say_which_pages_are_absent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    other = [f"https://other.example/{number}" for number in range(4)]
    config = written(tmp_path, [f"{HELD}#part", *other])
    said = "the snapshot lacks 4 of 5 pages that 1 report cites"
    _, planned, _ = run(capsys, "plan", config)
    assert said in planned and other[2] in planned and other[3] not in planned
    _, planned, _ = run(capsys, "plan", config, "--json")
    assert json.loads(planned)["absent"]["such_as"] == other[:3]
    with caplog.at_level(logging.WARNING):
        _, _, warned = run(capsys, "evaluate", config)
    assert said in caplog.text + warned


@pytest.mark.parametrize(
    ("cited", "mode"),
    [
        ([HELD], "snapshot"),
        (["http://held.example/a/?utm_source=b"], "snapshot"),
        (["https://other.example/"], "off"),
    ],
)
def test_nothing_is_said_where_nothing_is_absent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cited: list[str], mode: str
) -> None:
    assert "the snapshot lacks" not in run(capsys, "plan", written(tmp_path, cited, mode))[1]


@pytest.mark.parametrize(
    ("lacking", "tasks", "said"),
    [(1, 3, "1 task lacks"), (2, 3, "2 tasks lack"), (3, 3, "all 3 tasks lack"), (1, 1, "1 task lacks")],
)
def test_lacking_gold_is_said_with_its_tasks(lacking: int, tasks: int, said: str) -> None:
    line = str(LackingGold("race", lacking, tasks, "no criteria"))
    assert line == f"race: {said} the gold it needs and will be unscored: no criteria"
