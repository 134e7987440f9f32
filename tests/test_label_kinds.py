"""Evidence as labels that people can give: which lines are labels, and what they count in the metric."""

from collections import Counter
from pathlib import Path

import pytest

from adjudge.engine.commands.agreement import labels_table
from adjudge.engine.runs.items import Item
from adjudge.engine.statistics.by_people import ByPeople
from adjudge.engine.statistics.labels import with_labels
from adjudge.scoring.contract.scorecard import MISSING, Evidence, Outcome
from adjudge.scoring.deepresearch_bench.fact import Fact
from adjudge.scoring.dr3_eval.dr3 import DR3
from adjudge.scoring.drmi_bench.drmi import DrMi
from adjudge.scoring.livedrbench.livedr import LiveDR
from adjudge.scoring.rubrics.rubrics import Rubrics
from tests.labelled import example
from tests.worlds import lines

# The metric that a protocol's labels count in; none where no metric is a share of them.
COUNTED = {
    "quickstart": {"c_acc"},
    "rubrics": {"score"},
    "healthbench": {"score"},
    "researchrubrics": {"score"},
    "deepresearch-bench-2": {"total"},
    "liveresearchbench": {"presentation", "coverage"},
    "dr3": {"fa", "if"},
    "drmi": set(),
    "livedrbench": set(),
    "rigorous": set(),
}


@pytest.mark.parametrize("name", COUNTED)
def test_labels_make_up_the_metric_they_count_in(name: str, tmp_path: Path) -> None:
    run = example(name, tmp_path)
    counted, ids = set(), Counter()
    for card, items in run.labelled_cards():
        ids.update(item.id for item in items)
        for metric in {item.labelled.metric for item in items} - {""}:
            lines = [one.labelled for one in items if one.labelled.metric == metric]
            lines = [one for one in lines if one.value is not None]
            total = sum(one.weight * one.value for one in lines) / sum(one.full for one in lines)
            assert card.scores[metric] == pytest.approx(total, abs=1e-12)
            counted.add(metric)
    assert counted == COUNTED[name]
    assert ids and set(ids.values()) == {1}
    known: list[Item] = list(run.items)
    assert known and all(one.labelled.label in one.labelled.kind.labels for one in known)


@pytest.mark.parametrize(
    ("protocol", "line", "label", "value"),
    [
        (Fact, {"outcome": Outcome("supported", words="supported (in part)"), "url": "u"}, "supported", 1.0),
        (Fact, {"outcome": Outcome("note", words="supported"), "url": "u"}, "", None),
        (Fact, {"outcome": Outcome("unreachable"), "url": "u", "reason": "page_gone"}, "", 0.0),
        (Fact, {"outcome": Outcome("unreachable"), "url": "u", "reason": "page_timeout"}, "", 0.0),
        (Fact, {"outcome": MISSING, "url": "u", "reason": "page_rate_limited"}, "", None),
        (Fact, {"outcome": MISSING, "url": "u", "reason": "judge_timeout"}, "", None),
        (Rubrics, {"outcome": Outcome.graded(2, 3)}, "partly met", 2 / 3),
        (Rubrics, {"outcome": Outcome.graded(3, 3)}, "met", 1.0),
        (Rubrics, {"outcome": Outcome.graded(-4, 0), "worst": -4.0}, "yes", -1.0),
        (Rubrics, {"outcome": Outcome.graded(0, 0), "worst": -4.0}, "no", 0.0),
        (Rubrics, {"outcome": Outcome.graded(0, 0)}, "no", 0.0),
        (Rubrics, {"outcome": MISSING, "reason": "judge_timeout", "judgment": "0" * 32}, "", None),
        (Rubrics, {"outcome": Outcome("missing", words="no gold"), "reason": "gold_missing"}, None, None),
        (Rubrics, {"outcome": Outcome("note", words="2 of 3")}, None, None),
        (Rubrics, {"outcome": Outcome("points", 4.0, words="used 3 times, relevance 4")}, None, None),
        (DR3, {"what": "claim: x (citing y)", "outcome": Outcome("unsupported")}, "unsupported", 0.0),
        (DR3, {"what": "checklist: x", "outcome": MISSING}, "", None),
        (DR3, {"what": "checklist: x", "outcome": Outcome.graded(0, 1)}, "not met", 0.0),
        (DR3, {"what": "insight: x", "outcome": Outcome.graded(0.5, 1)}, "partly", 0.0),
        (DR3, {"what": "depth", "outcome": Outcome.graded(0.5, 1)}, None, None),
        (LiveDR, {"outcome": Outcome("unmatched")}, "no", 0.0),
        (LiveDR, {"outcome": Outcome("matched", words="Aspirin")}, "yes", 1.0),
        (LiveDR, {"outcome": Outcome("points", 2, 3)}, None, None),
        (DrMi, {"outcome": Outcome("false"), "value": 1.0}, "false", 0.0),
        (DrMi, {"outcome": Outcome("matched", words="true")}, "yes", 1.0),
    ],
)
def test_lines_are_read_as_labels_by_their_fields(protocol, line, label, value) -> None:
    found = protocol.labelled(Evidence(**{"what": "x", **line}))
    assert (found and found.label) == label
    assert (found and found.value) == (value if value is None else pytest.approx(value))


def test_figures_by_peoples_verdicts_stand_beside_the_judges(tmp_path: Path) -> None:
    """Of answers that list titles or names: those whose every match is labelled, and no others."""
    run = example("livedrbench", tmp_path)
    items = list(run.items)

    def found(labels: dict[str, str]) -> dict[str, ByPeople]:
        file = lines(
            tmp_path / "labels.jsonl", [{"item": one, "label": said} for one, said in labels.items()]
        )
        return {one.metric: one for row in with_labels(run.folder, file) for one in row.by_people}

    same = found({one.id: one.labelled.label for one in items})
    assert same.keys() == {"precision", "recall", "f1"}
    assert all(one.people == pytest.approx(one.judge) and one.n_reports > 1 for one in same.values())
    none = found({one.id: "no" for one in items})
    assert all(one.people == 0.0 and one.judge == same[name].judge > 0 for name, one in none.items())
    tasks = {name for name, task in run.record.tasks.items() if task.domain in ("entities", "prior-art")}
    first = next(one for one in items if one.task_id in tasks)
    fewer = found({one.id: one.labelled.label for one in items if one is not first})
    assert fewer["f1"].n_reports == same["f1"].n_reports - 1
    said = labels_table(with_labels(run.folder, tmp_path / "labels.jsonl")).said
    assert any(one.startswith("livedr.precision by people's verdicts ") for one in said)
