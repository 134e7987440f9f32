"""docs/people.md: the papers' checks of their judges, as its table says, on made runs with known disagreement."""

import json
import re
from pathlib import Path

import pytest

from adjudge.engine.runs.items import stratum_sizes
from adjudge.engine.viewer.labelling import drawn
from tests.commands import run
from tests.labelled import example
from tests.worlds import lines

PAGE = (Path(__file__).parents[1] / "docs/people.md").read_text(encoding="utf-8")
CHECKS = PAGE.split("## The papers' own checks", 1)[1]
OTHER = {
    "supported": "unsupported",
    "unsupported": "supported",
    "unknown": "unsupported",
    "met": "not met",
    "not met": "met",
    "partly met": "met",
    "yes": "no",
    "no": "yes",
}


@pytest.mark.parametrize(
    ("name", "shipped", "kind"),
    [
        ("drb", "quickstart", "backing"),
        ("rigorous", "rigorous", "criterion"),
        ("livedr", "livedrbench", "match"),
    ],
)
def test_papers_check_prints_its_figure(name, shipped, kind, tmp_path, monkeypatch, capsys) -> None:
    judged = example(shipped, tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "run").rename(tmp_path / "runs" / name)
    monkeypatch.chdir(tmp_path)
    every = list(judged.items)
    sizes, sample = stratum_sizes(every), drawn(every, 30, judged.config.seed)
    labelled = stratum_sizes(sample)
    rows, right, total = [], 0.0, 0.0
    recalled: dict[str, list[float]] = {}
    for place, item in enumerate(sample):
        said = OTHER[item.labelled.label] if place % 7 == 3 else item.labelled.label
        rows.append({"item": item.id, "label": said, "rater": "ann"})
        weight = sizes[item.stratum] / labelled[item.stratum]
        agreed = weight if said == item.labelled.label else 0.0
        right, total = right + agreed, total + weight
        both = recalled.setdefault(said, [0.0, 0.0])
        recalled[said] = [both[0] + agreed, both[1] + weight]
    lines(tmp_path / "labels.jsonl", rows)
    [command] = re.findall(rf"`adjudge (agreement runs/{name} --labels labels\.jsonl)`", CHECKS)
    code, out, error = run(capsys, *command.split(), "--json")
    assert code == 0, error
    [found] = json.loads(out)
    assert (found["kind"], found["n_items"], found["weighed"]) == (kind, len(sample), True)
    assert found["accuracy"] == pytest.approx(right / total)
    for verdict in found["verdicts"]:
        if verdict["n_people"]:
            agreed, people = recalled[verdict["verdict"]]
            assert verdict["recall"] == pytest.approx(agreed / people)
    code, out, _ = run(capsys, *command.split())
    assert code == 0 and f"({kind})" in out and "of the run's" in " ".join(out.split())
