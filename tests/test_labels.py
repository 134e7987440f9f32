"""`adjudge agreement --labels`: single verdicts against people's, item by item."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support

from adjudge.engine import RunConfig, evaluate
from adjudge.engine.cli.main import main
from adjudge.engine.commands.labels import Label, read_labels, with_labels
from adjudge.engine.commands.show import find_evidence
from adjudge.engine.errors import UsageError
from tests.worlds import lines, world

SYSTEM, TASK = "system0", "1"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run judged by rubrics; every report has ten verdicts."""
    evaluate(RunConfig.load(str(world(tmp_path))))
    return tmp_path / "run"


def judged(run: Path, system: str = SYSTEM, task: str = TASK) -> dict[str, str]:
    """The judge's points for each criterion of a report."""
    [card] = find_evidence(str(run), task, system)
    return {line.what: line.outcome.split(" of ")[0] for line in card.card.evidence}


def labelled(run: Path, **wrong: str) -> list[object]:
    """Labels of one report as the judge gave them, those whose number is in `wrong` otherwise."""
    return [
        {"task_id": TASK, "system": SYSTEM, "what": what, "label": wrong.get(f"n{number}", points)}
        for number, (what, points) in enumerate(judged(run).items())
    ]


def test_judge_agrees_with_its_own_verdicts(run: Path) -> None:
    [found] = with_labels(run, lines(run / "labels.jsonl", labelled(run)))
    assert (found.protocol, found.n_items, found.accuracy, found.n_raters) == ("rubrics", 10, 1.0, 1)
    assert all(one.recall == one.precision == 1.0 for one in found.verdicts)
    assert found.alpha is None and found.accuracy_interval == pytest.approx((0.7225, 1.0), abs=1e-3)


def test_figures_are_those_of_sklearn(run: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"task_id": task, "system": system, "what": what, "label": points if rng.random() < 0.7 else "0"}
        for task in ("0", "1", "2")
        for system in ("system0", "system1")
        for what, points in judged(run, system, task).items()
    ]
    [found] = with_labels(run, lines(run / "labels.jsonl", rows))
    judge = [judged(run, row["system"], row["task_id"])[row["what"]] for row in rows]
    people, judge = [[f"{float(one):g}" for one in side] for side in ([row["label"] for row in rows], judge)]
    assert found.accuracy == pytest.approx(np.mean(np.array(people) == np.array(judge)))
    assert found.kappa == pytest.approx(cohen_kappa_score(people, judge))
    names = [one.verdict for one in found.verdicts]
    precision, recall, _, support = precision_recall_fscore_support(
        people, judge, labels=names, zero_division=np.nan
    )
    for place, one in enumerate(found.verdicts):
        assert one.n_people == support[place]
        assert np.isnan(recall[place]) if one.recall is None else one.recall == pytest.approx(recall[place])
        assert np.isnan(precision[place]) if one.precision is None else one.precision == precision[place]


def test_most_raters_decide_and_ties_are_left_out(run: Path) -> None:
    what, other = list(judged(run).items())[:2]
    wrong = "0" if float(what[1]) else "1"
    said = [("a", what[0], what[1]), ("b", what[0], what[1]), ("c", what[0], wrong)]
    said += [("a", other[0], "0"), ("b", other[0], "1")]
    rows = [
        {"task_id": TASK, "system": SYSTEM, "what": text, "label": label, "rater": rater}
        for rater, text, label in said
    ]
    [found] = with_labels(run, lines(run / "labels.jsonl", rows))
    assert (found.n_items, found.accuracy, found.n_tied, found.n_raters) == (1, 1.0, 1, 3)
    assert found.alpha is not None and found.alpha < 0.5


def test_labels_of_other_reports_are_left_out_and_named(run: Path) -> None:
    rows = [*labelled(run), {"task_id": "9", "system": SYSTEM, "what": "Nothing.", "label": "0"}]
    [found] = with_labels(run, lines(run / "labels.jsonl", rows))
    assert found.n_items == 10 and found.left_out == f"'Nothing.' of '{SYSTEM}' on task '9'"
    with pytest.raises(UsageError, match=r"no label in .* is for this run"):
        with_labels(run, lines(run / "labels.jsonl", rows[-1:]))


def test_same_statement_of_two_pages_needs_its_url(tmp_path: Path) -> None:
    """FACT: what one page supports another need not."""
    lines(tmp_path / "tasks.jsonl", [{"id": "1", "prompt": "Why?"}])
    text = "Rain fell in May [1]. Rain fell in May [2].\n\n## References\n[1] https://a.example/\n[2] https://b.example/"
    lines(tmp_path / "r.jsonl", [{"task_id": "1", "system": "A", "text": text}])
    pages = {"a": "Rain fell in May.", "b": "Snow was seen by nobody."}
    for name, said in pages.items():
        (tmp_path / "pages").mkdir(exist_ok=True)
        (tmp_path / f"pages/{name}.html").write_text(f"<p>{said}</p>")
    lines(
        tmp_path / "pages/index.jsonl",
        [{"url": f"https://{name}.example/", "file": f"{name}.html"} for name in pages],
    )
    config = {
        "tasks": str(tmp_path / "tasks.jsonl"),
        "reports": [str(tmp_path / "r.jsonl")],
        "protocols": [{"name": "fact", "extraction": "markers"}],
        "fetch": {"mode": "snapshot", "snapshot": str(tmp_path / "pages")},
        "store": str(tmp_path / "store"),
        "out": str(tmp_path / "run"),
    }
    evaluate(RunConfig.of(config))
    [card] = find_evidence(str(tmp_path / "run"), "1", "A")
    [(what, url, outcome), (_, _, other)] = [(e.what, e.url, e.outcome) for e in card.card.evidence]
    assert outcome.startswith("supported") and not other.startswith("supported")
    row = {"task_id": "1", "system": "A", "what": what, "label": "Supported"}
    with pytest.raises(UsageError, match=r"label 1: fits several verdicts; add url"):
        with_labels(tmp_path / "run", lines(tmp_path / "labels.jsonl", [row]))
    [found] = with_labels(tmp_path / "run", lines(tmp_path / "labels.jsonl", [row | {"url": url}]))
    assert (found.protocol, found.n_items, found.accuracy) == ("fact", 1, 1.0)


def test_csv_and_json_lines_are_read_alike(tmp_path: Path) -> None:
    row = {"task_id": "1", "system": "A", "what": 'It says "no",\ntwice.', "label": "met", "rater": "x"}
    lines(tmp_path / "a.jsonl", [row])
    (tmp_path / "a.csv").write_text(
        'task_id,system,what,label,rater,url\n1,A,"It says ""no"",\ntwice.",met,x,\n', encoding="utf-8-sig"
    )
    assert read_labels(tmp_path / "a.csv") == read_labels(tmp_path / "a.jsonl") == [Label(**row)]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[1]",
        "{",
        '{"task_id": "1"}',
        '{"task_id": 1, "system": [], "what": "", "label": ""}',
        "[" * 10_000,
    ],
)
def test_invalid_labels_are_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "labels.jsonl").write_text(content)
    with pytest.raises(UsageError, match=r"labels: .*labels\.jsonl"):
        read_labels(tmp_path / "labels.jsonl")


def test_rater_who_contradicts_themselves_is_an_error(run: Path) -> None:
    rows = labelled(run)[:1]
    with pytest.raises(UsageError, match=r"label 2: '' labelled this before and differently"):
        with_labels(run, lines(run / "labels.jsonl", [*rows, {**rows[0], "label": "17"}]))


def test_table_shows_recall_and_precision(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = lines(run / "labels.jsonl", labelled(run))
    with pytest.raises(SystemExit) as ended:
        main(["agreement", str(run), "--labels", str(file)])
    said = capsys.readouterr().out
    assert ended.value.code == 0 and "recall" in said and "1.000" in said
    with pytest.raises(SystemExit):
        main(["agreement", str(run), "--labels", str(file), "--json"])
    assert json.loads(capsys.readouterr().out)[0]["accuracy"] == 1.0
