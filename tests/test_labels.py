"""`adjudge agreement --labels`: single verdicts against people's, item by item."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score, precision_recall_fscore_support

from adjudge.engine.commands.agreement import labels_said
from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.commands.main import main
from adjudge.engine.commands.show import find_evidence
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.runs.items import Label, Stratum, read_labels, stratum_sizes
from adjudge.engine.runs.run import Run
from adjudge.engine.statistics.labels import Pair, share_of, with_labels
from adjudge.engine.viewer.labelling import drawn
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
    return {line.what: f"{line.points:g}" for line in card.card.evidence}


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


def test_drawn_labels_are_weighed_back_to_the_run(run: Path) -> None:
    """Against sklearn with weights: a stratum's items over its labels."""
    every = {item.id: item for item in Run.open(run).items}
    sizes = stratum_sizes(every.values())
    sample = drawn(every.values(), 60, seed=3)
    rng = np.random.default_rng(1)
    other = {"met": "not met", "not met": "met", "yes": "no", "no": "yes"}
    rows, people = [], {}
    for item in sample:
        said = item.labelled.label if rng.random() < 0.75 else other[item.labelled.label]
        people[item.id] = said
        rows += [{"item": item.id, "label": said, "rater": rater} for rater in ("ann", "bob")]
    found = {one.kind: one for one in with_labels(run, lines(run / "labels.jsonl", rows))}
    assert set(found) == {"criterion", "penalty"}
    labelled = stratum_sizes(sample)
    for kind, one in found.items():
        own = [item for item in sample if item.labelled.kind.name == kind]
        weights = [sizes[item.stratum] / labelled[item.stratum] for item in own]
        truth, judge = [people[item.id] for item in own], [item.labelled.label for item in own]
        assert one.weighed and one.n_verdicts == sum(
            item.labelled.kind.name == kind for item in every.values()
        )
        assert one.accuracy == pytest.approx(accuracy_score(truth, judge, sample_weight=weights))
        assert one.kappa == pytest.approx(cohen_kappa_score(truth, judge, sample_weight=weights))
        names = [verdict.verdict for verdict in one.verdicts]
        precision, recall, _, _ = precision_recall_fscore_support(
            truth, judge, labels=names, sample_weight=weights, zero_division=0.0
        )
        assert [v.recall or 0.0 for v in one.verdicts] == pytest.approx(recall)
        assert [v.precision or 0.0 for v in one.verdicts] == pytest.approx(precision)
        assert one.alpha == 1.0 and one.alpha_judge is not None and one.alpha_judge < 1.0
        low, high = one.accuracy_interval
        assert low < one.accuracy < high
        assert {group.attribute for group in one.groups} == {"domain"}
        assert sum(group.n_items for group in one.groups) == one.n_items
        said = labels_said([one])
        assert f"of the run's {one.n_verdicts} verdicts" in said and "by 2 raters" in said


def test_weighed_accuracy_covers_that_of_the_run() -> None:
    """2,000 samples of 60 from strata of very different sizes; the interval covers the whole run's accuracy."""
    rng = np.random.default_rng(0)
    strata = [Stratum("p", "k", "s", label) for label in ("a", "b", "c")]
    sizes, right = Counter(dict(zip(strata, (900, 90, 30), strict=True))), (0.85, 0.7, 0.5)
    truth = sum(sizes[one] * share for one, share in zip(strata, right, strict=True)) / sum(sizes.values())
    covered = 0
    for _ in range(2_000):
        pairs = [
            Pair("x" if rng.random() < share else "y", "x", one, sizes[one] / 20, "1")
            for one, share in zip(strata, right, strict=True)
            for _ in range(20)
        ]
        low, high = share_of(pairs, lambda pair: pair.people == pair.judge)[1]
        covered += low <= truth <= high
    assert 0.93 <= covered / 2_000 <= 0.975


@pytest.mark.parametrize("label", ["perhaps", "supported", "1"])
def test_unknown_label_of_an_item_names_the_known_ones(run: Path, label: str) -> None:
    item = next(item for item in Run.open(run).items if item.labelled.kind.name == "criterion")
    with pytest.raises(UsageError, match=r"label 1: .* is unknown; use one of met, partly met, not met"):
        with_labels(run, lines(run / "labels.jsonl", [{"item": item.id, "label": label}]))


def test_items_of_another_run_are_named(run: Path) -> None:
    item = next(Run.open(run).items)
    rows = [{"item": item.id, "label": item.labelled.label}, {"item": "v0", "label": "met"}]
    [found] = with_labels(run, lines(run / "labels.jsonl", rows))
    assert found.n_items == 1 and found.left_out == "item 'v0'"


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
