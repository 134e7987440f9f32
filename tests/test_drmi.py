"""Dr.Mi-Bench: from plans, works and labels to metrics, with scripted judges, hostile reports and the example."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from adjudge.engine.formats.dataset import FormatError, InputFile
from adjudge.engine.formats.drmi import read
from adjudge.engine.runs.record import RunRecord
from adjudge.judges import Answer, Judge, LexicalJudge, Question, ScriptedJudge, numbered
from adjudge.prompts import PromptBook
from adjudge.scoring.answers.sameness import Sameness, same_text
from adjudge.scoring.contract.case import Case, Citation, Report, Task
from adjudge.scoring.contract.protocol import score_case
from adjudge.scoring.contract.reasons import CAUSES
from adjudge.scoring.contract.scorecard import Bounds, Scorecard
from adjudge.scoring.drmi_bench.drmi import (
    MAX_SUBTASKS,
    DrMi,
    Gold,
    Labels,
    LabelStatements,
    SameSubtask,
    Statement,
    retrieved,
)
from adjudge.scoring.drmi_bench.measures import (
    MAX_PREDICTED,
    Label,
    Reference,
    Rule,
    doi_of,
    find_references,
    planning_scores,
    reasoning_scores,
    retrieval_scores,
    title20,
)
from tests.examples import shipped
from tests.tools import DirectTools

EXAMPLE = shipped("drmi")
GOLD = Gold(
    plan=("collect data", "fit a model", "test it"),
    references=(
        Reference("A Study of Ferries", "10.5555/f.1"),
        Reference("On the Motion of Barges in Canals"),
    ),
    statements=(
        Statement("water is wet", True),
        Statement("fire is cold", False),
        Statement("ice floats", True),
    ),
)
REASONING = [metric.name for metric in DrMi(modules=("reasoning",)).metrics]


def case_of(gold: Gold = GOLD, **report: Any) -> Case:
    raw = msgspec.Raw(msgspec.json.encode(gold))
    task = Task(id="1", prompt="the question", gold={"drmi": raw})
    return Case(task=task, report=Report(**({"task_id": "1", "system": "s", "text": "a report"} | report)))


def labelling(labels: dict[str, Label]) -> Callable[[Question[Any]], Answer]:
    def opinion(question: Question[Any]) -> Answer:
        keys = numbered(question.count)
        if isinstance(question, LabelStatements):
            pairs = zip(keys, question.statements, strict=True)
            return Labels(items={key: labels.get(text, "not_stated") for key, text in pairs})
        assert isinstance(question, SameSubtask)
        same = zip(keys, question.references, strict=True)
        return Sameness(
            items={key: "same" if same_text(question.candidate, one) else "different" for key, one in same}
        )

    return opinion


def score(
    case: Case, opinion: Callable[[Question[Any]], Any], **options: Any
) -> tuple[Scorecard, DirectTools]:
    tools = DirectTools(ScriptedJudge(opinion))
    return asyncio.run(score_case(DrMi(**options), case, tools)), tools


# The three modules, end to end


def test_all_modules_are_scored_side_by_side() -> None:
    case = case_of(
        plan=("Fit a model", "go home", "collect data"),
        evidence=(
            Citation(url="https://doi.org/10.5555/F.1"),
            Citation(url="", title="On the motion of barges: in canals"),
        ),
    )
    card, tools = score(case, labelling({"water is wet": "true", "fire is cold": "true"}))
    assert card.status == "scored"
    assert set(card.scores) == {metric.name for metric in DrMi().metrics}
    one = {
        name: card.scores[f"plan_{name}"] for name in ("precision", "recall", "accuracy", "accuracy_tables")
    }
    assert one == pytest.approx(
        {"precision": 2 / 3, "recall": 2 / 3, "accuracy": 2 / 4, "accuracy_tables": 2 / 3}
    )
    assert card.scores["retrieval_accuracy"] == 1
    assert card.scores["retrieval_recall_doi"] == 0.5
    assert card.scores["retrieval_recall_title20"] == 0.5
    assert card.scores["reasoning_accuracy"] == pytest.approx(1 / 3)
    assert (card.scores["reasoning_precision"], card.scores["reasoning_recall"]) == (0.5, 0.5)
    assert card.scores["reasoning_recall_macro"] == pytest.approx((0.5 + 0 + 0) / 3)
    said = {line.what: line.outcome.words for line in card.evidence}
    assert (said["water is wet"], said["fire is cold"]) == ("true", "true")
    assert (
        sorted(type(question).__name__ for question in tools.questions)
        == ["LabelStatements"] + ["SameSubtask"] * 3
    )
    assert [metric.name for metric in DrMi().metrics if metric.headline] == [
        "plan_f1",
        "retrieval_accuracy",
        "reasoning_accuracy",
    ]


def test_modules_can_be_left_out() -> None:
    card, tools = score(case_of(), labelling({}), modules=("reasoning",))
    assert (
        set(card.scores) == {metric.name for metric in DrMi(modules=("reasoning",)).metrics} == {*REASONING}
    )
    assert len(tools.questions) == 1


def test_part_missing_from_the_report_scores_zero() -> None:
    card, _ = score(case_of(), labelling({}))
    assert {value for name, value in card.scores.items() if not name.startswith("reasoning")} == {0.0}
    assert card.status == "scored"


def test_part_missing_from_gold_leaves_its_module_unscored() -> None:
    gold = msgspec.structs.replace(GOLD, plan=(), references=())
    card, _ = score(case_of(gold), labelling({"water is wet": "true"}))
    assert {name for name, value in card.scores.items() if value is not None} == set(REASONING)
    assert set(card.reasons.values()) == {"gold_missing"}
    card, _ = score(case_of(msgspec.structs.replace(GOLD, statements=())), labelling({}))
    assert {name: card.reasons[name] for name in REASONING} == dict.fromkeys(REASONING, "gold_missing")


def test_empty_report_gets_the_minimum_of_gold_parts() -> None:
    card, _ = score(case_of(msgspec.structs.replace(GOLD, plan=(), references=()), text=" "), labelling({}))
    assert card.scores == dict.fromkeys(REASONING, 0.0)
    assert card.reason == "report_empty"


def test_many_statements_and_long_plans_are_split_at_twenty() -> None:
    gold = Gold(
        plan=tuple(f"step {number}" for number in range(45)),
        statements=tuple(Statement(f"s{number}", number % 2 == 0) for number in range(41)),
    )
    every: dict[str, Label] = {f"s{number}": "true" if number % 2 == 0 else "false" for number in range(41)}
    card, tools = score(case_of(gold, plan=("step 44",)), labelling(every), modules=("planning", "reasoning"))
    assert sorted(question.count for question in tools.questions) == [1, 5, 20, 20, 20, 20]
    assert card.scores["reasoning_accuracy"] == 1
    assert (card.scores["plan_precision"], card.scores["plan_recall"]) == (1, pytest.approx(1 / 45))


def test_endless_plan_counts_but_is_not_asked_about() -> None:
    plan = ("collect data", *("" for _ in range(20)), *(f"filler {number}" for number in range(3_000)))
    card, tools = score(case_of(plan=plan), labelling({}), modules=("planning",))
    assert len(tools.questions) <= MAX_SUBTASKS
    assert card.scores["plan_precision"] == pytest.approx(1 / len(plan))


# Judges that do not answer as they should

MALFORMED = {
    "truncated": ('{"items": {"c01": "tr', "judge_unparseable"),
    "empty": ("", "judge_unparseable"),
    "wrong type": ('{"items": ["true"]}', "judge_unparseable"),
    "value not allowed": ('{"items": {"c01": "yes", "c02": "no", "c03": "no"}}', "judge_unparseable"),
    "missing keys": ('{"items": {"c01": "true", "c02": "true"}}', "judge_unparseable"),
    "refused": ("judge_refused", "judge_refused"),
    "unavailable": ("judge_unavailable", "judge_unavailable"),
    "deadline": ("deadline", "deadline"),
}


@pytest.mark.parametrize(("reply", "reason"), MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize(("kind", "prefix"), [(LabelStatements, "reasoning"), (SameSubtask, "plan")])
def test_malformed_reply_spares_the_other_modules(
    reply: str, reason: str, kind: type[Question[Any]], prefix: str
) -> None:
    def opinion(question: Question[Any]) -> Any:
        return reply if isinstance(question, kind) else labelling({})(question)

    card, _ = score(case_of(plan=("collect data",)), opinion)
    missing = {name for name, value in card.scores.items() if value is None}
    assert missing == {name for name in card.scores if name.startswith(prefix)}
    assert set(card.reasons.values()) == {reason}
    assert CAUSES[reason] == "infrastructure"  # type: ignore[index]


@pytest.mark.parametrize("reason", ["context_overflow", "answer_truncated", "judge_timeout"])
def test_unanswered_question_leaves_bounds(reason: str) -> None:
    def opinion(question: Question[Any]) -> Any:
        return reason if isinstance(question, LabelStatements | SameSubtask) else labelling({})(question)

    card, _ = score(case_of(plan=("collect data",)), opinion)
    planning = [name for name in card.scores if name.startswith("plan_")]
    assert len(planning) == 8
    assert {card.scores[name] for name in (*planning, *REASONING)} == {None}
    assert {card.reasons[name] for name in (*planning, *REASONING)} == {reason}
    assert {card.bounds[name].low for name in (*planning, *REASONING)} == {0.0}
    assert card.bounds["reasoning_accuracy"] == Bounds(0, 1, 0, len(GOLD.statements))
    assert card.bounds["plan_precision"] == Bounds(0, 1, 0, 1)


def test_questions_use_the_language_of_the_task() -> None:
    case = case_of(plan=("collect data",))
    _, tools = score(
        msgspec.structs.replace(case, task=msgspec.structs.replace(case.task, language="zh")), labelling({})
    )
    assert {question.language for question in tools.questions} == {"zh"}


def test_missing_batch_leaves_accuracy_unscored() -> None:
    gold = Gold(statements=tuple(Statement(f"s{number}", True) for number in range(60)))
    replies = iter([*[Labels(items=dict.fromkeys(numbered(20), "true"))] * 2, "judge_timeout"])
    card, _ = score(case_of(gold), lambda question: next(replies), modules=("reasoning",))
    assert {card.scores[name] for name in REASONING} == {None}
    assert card.bounds["reasoning_accuracy"] == Bounds(pytest.approx(2 / 3), 1, 40, 60)


# Arithmetic


@given(st.integers(0, 7), st.integers(1, 7), st.data())
def test_one_to_one_is_optimal_against_scipy(predicted: int, gold: int, data: st.DataObject) -> None:
    row = st.lists(st.booleans(), min_size=gold, max_size=gold)
    same = data.draw(st.lists(row, min_size=predicted, max_size=predicted))
    found = planning_scores(same, gold)
    matrix = np.array(same, dtype=float).reshape(predicted, gold)
    places = linear_sum_assignment(matrix, maximize=True)
    assert found.matched == int(matrix[places].sum())
    assert found.one_to_one.recall == pytest.approx(found.matched / gold)
    assert found.many_to_many.recall == pytest.approx(matrix.any(axis=0).sum() / gold)
    assert found.jaccard == pytest.approx(found.matched / (predicted + gold - found.matched))


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from(["true", "false", "not_stated"])), min_size=1, max_size=30
    )
)
def test_reasoning_readings_are_consistent(pairs: list[tuple[bool, Label]]) -> None:
    truth, labels = [one for one, _ in pairs], [label for _, label in pairs]
    found = reasoning_scores(truth, labels)
    assert 0 <= found.macro.f1 <= 2 / 3
    assert found.macro.f1 <= found.macro_present.f1 + 1e-12
    if "not_stated" not in labels:
        assert found.macro_present.recall <= 1
    assert found.accuracy == sum(("true" if one else "false") == label for one, label in pairs) / len(pairs)


def test_not_stated_is_never_correct() -> None:
    found = reasoning_scores([True, False], ["not_stated", "not_stated"])
    assert (found.accuracy, found.binary.f1, found.macro.f1) == (0, 0, 0)


# Works


@pytest.mark.parametrize(
    ("text", "doi"),
    [
        ("10.1000/ABC.1", "10.1000/abc.1"),
        ("https://doi.org/10.1000/abc.1).", "10.1000/abc.1"),
        ("https://dx.doi.org/10.1000/abc.1?x=1#y", "10.1000/abc.1"),
        ("https://arxiv.org/abs/2508.04183v2", "10.48550/arxiv.2508.04183"),
        ("arXiv: 2508.04183", "10.48550/arxiv.2508.04183"),
        ("https://arxiv.org/pdf/hep-th/9901001", "10.48550/arxiv.hep-th/9901001"),
        ("https://papers.example/10", ""),
        ("", ""),
    ],
)
def test_doi_is_found_in_any_form(text: str, doi: str) -> None:
    assert doi_of(text) == doi


def test_title20_keeps_letters_and_digits_of_any_script() -> None:
    assert title20("A Study: of  (many) Ferries, 2nd") == "astudyofmanyferries2"
    assert title20("Growth of <i>Kelpa <sub>2</sub>rubra</i> &amp; piers") == title20(
        "Growth of Kelpa 2rubra & piers"
    )
    assert title20("&lt;em&gt;Kelpa&lt;/em&gt; alba under bridges") == title20("Kelpa alba under bridges")
    assert title20("If a <b and c> d, what is e?") == "ifabandcdwhatise"
    assert title20("关于驳船运动的研究 2024") == "关于驳船运动的研究2024"


@pytest.mark.parametrize(
    ("rule", "both"), [("doi", 1), ("title20", 2), ("combined", 2)], ids=["doi", "title20", "combined"]
)
def test_matching_rules_differ_as_documented(rule: Rule, both: int) -> None:
    gold = [Reference("Alpha", "10.1000/a"), Reference("Beta", "10.1000/b"), Reference("Gamma")]
    predicted = [Reference("Other name", "10.1000/a"), Reference("Beta", "10.1000/wrong"), Reference("Gamma")]
    assert find_references(predicted, gold, rule).both == (both if rule != "title20" else 2)


def test_works_are_distinguished_by_the_field_of_the_rule() -> None:
    predicted = [
        Reference("Alpha", "10.1000/a"),
        Reference("Alpha", "10.1000/b"),
        Reference("Beta", "10.1000/a"),
    ]
    counts = {rule: find_references(predicted, [], rule).predicted for rule in ("doi", "title20", "combined")}
    assert counts == {"doi": 2, "title20": 2, "combined": 2}
    assert (
        find_references([Reference("Alpha", "10.1000/a"), Reference("Alpha")], [], "title20").predicted == 1
    )
    assert (
        find_references([Reference("Alpha", "10.1000/a"), Reference("Alpha")], [], "combined").predicted == 2
    )


def test_work_counts_once_unless_its_identity_is_unknown() -> None:
    gold = [Reference("Alpha", "10.1000/a"), Reference("Beta")]
    predicted = [
        Reference("Alpha", "10.1000/A"),
        Reference("alpha", "10.1000/a"),
        Reference("Beta"),
        Reference("Beta!"),
    ]
    assert find_references(predicted, gold, "doi") == (found := find_references(predicted, gold, "doi"))
    assert (found.predicted, found.gold, found.both) == (3, 2, 1)
    found = find_references(predicted, gold, "combined")
    assert (found.predicted, found.gold, found.both) == (2, 2, 2)
    nothing = find_references([Reference(), Reference()], gold, "combined")
    assert (nothing.predicted, nothing.both) == (2, 0)


def test_research_paper_is_a_hit_or_a_miss() -> None:
    gold, noise = [Reference(doi="10.1000/a")], [Reference(doi=f"10.1000/n{number}") for number in range(9)]
    assert retrieval_scores([*noise, *gold], gold, "doi", "research").accuracy == 1
    assert retrieval_scores(noise, gold, "doi", "research").accuracy == 0
    assert retrieval_scores([*noise, *gold], gold, "doi", "review").accuracy == pytest.approx(0.1)


def test_flood_of_works_is_bounded_but_counts() -> None:
    flood = [Reference(doi=f"10.1000/n{number}") for number in range(20 * MAX_PREDICTED)]
    found = find_references([*flood, Reference(doi="10.1000/gold")], [Reference(doi="10.1000/gold")], "doi")
    assert (found.predicted, found.both) == (len(flood) + 1, 0)


def test_works_come_from_evidence_then_citations_then_the_text() -> None:
    one, two = (
        Citation(url="https://doi.org/10.1000/a", title="A"),
        Citation(url="https://x.example", title="B"),
    )
    listed = "## References\n\n[1] Rust. https://doi.org/10.1000/b\n"
    text = f"Ferries rust [1], see [Barges](https://doi.org/10.1000/c).\n\n{listed}"
    assert asyncio.run(retrieved(case_of(evidence=(one,), citations=(two,)).report)) == [
        Reference("A", "10.1000/a")
    ]
    assert asyncio.run(retrieved(case_of(citations=(two,)).report)) == [Reference("B", "")]
    assert {work.doi for work in asyncio.run(retrieved(case_of(text=text).report))} == {
        "10.1000/b",
        "10.1000/c",
    }
    assert asyncio.run(retrieved(case_of(text="no sources").report)) == []


@given(st.text(max_size=200))
def test_any_title_or_url_is_parsed(text: str) -> None:
    assert len(title20(text)) <= 20 * 2  # lower case may lengthen a character
    assert doi_of(text) == doi_of(doi_of(text)) or not doi_of(text)


# The layout, and the example with the lexical judge


def test_example_scores_with_the_lexical_judge() -> None:
    dataset = read(EXAMPLE, [InputFile(file) for file in sorted(EXAMPLE.glob("reports/*.jsonl"))])
    assert not dataset.rejected
    assert dataset.systems == ["osprey", "osprey (isolated)", "plover"]
    cards = {
        (card.system, card.task_id, card.sample): card
        for case in dataset.cases()
        for card in [asyncio.run(score_case(DrMi(), case, DirectTools(LexicalJudge())))]
    }
    assert len(cards) == 7
    assert all(card.status == "scored" for card in cards.values())
    assert cards["osprey (isolated)", "coating", 0].scores["plan_f1"] == 1
    assert cards["osprey", "coating", 0].scores["retrieval_accuracy"] == 1
    assert cards["osprey", "wetland", 0].scores["retrieval_recall"] == pytest.approx(2 / 3)
    assert cards["plover", "coating", 0].scores["plan_f1"] == 0
    better, worse = (
        cards[system, "coating", 0].scores["reasoning_accuracy"] for system in ("osprey", "plover")
    )
    assert better is not None
    assert worse is not None
    assert better > worse


@pytest.mark.parametrize("judge", [LexicalJudge(), ScriptedJudge(labelling({}))], ids=["lexical", "scripted"])
def test_files_become_a_leaderboard(judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjudge.engine.evaluation.assembly.make_judge", lambda *_: judge)
    config = RunConfig.load(
        EXAMPLE / "adjudge.yaml", out=str(tmp_path / "run"), store=str(tmp_path / "store")
    )
    first, second = evaluate(config), evaluate(config)
    assert (first.scorecards, first.unscored, first.rejected) == (7, 0, ())
    # Equal questions about several reports are asked once, and found by each of them the second time.
    assert second.from_judge == 0 and second.from_store >= first.from_judge > 0
    boards = {board.metric: board for board in second.leaderboard.metrics}
    assert [(row.system, row.rank) for row in boards["plan_f1"].standings] == [
        ("osprey (isolated)", 1.0),
        ("osprey", 2.0),  # a second sample of one task leaves nothing out on the others
        ("plover", 3.0),
    ]


def test_every_module_has_best_of_samples_and_a_frontier(tmp_path: Path) -> None:
    """Best of k and the frontiers stand beside the three headline metrics; the kind of a paper is kept for tables."""
    config = RunConfig.load(
        EXAMPLE / "adjudge.yaml", judge="lexical", out=str(tmp_path / "run"), store=str(tmp_path / "store")
    )
    board = evaluate(config).leaderboard
    boards = {one.metric: one for one in board.metrics}
    for name in ("plan_f1", "retrieval_accuracy", "reasoning_accuracy"):
        detail = boards[name].detail
        assert detail is not None
        assert ("osprey", 2) in {(one.system, one.k) for one in detail.best_of}
        assert {frontier.axis for frontier in detail.frontiers} >= {"seconds"}
    for grouping in board.groupings:
        assert {one.metric for one in grouping.mean} == {
            "plan_f1",
            "retrieval_accuracy",
            "reasoning_accuracy",
        }
    assert {grouping.attribute for grouping in board.groupings} == {"domain", "kind"}
    tasks = RunRecord.read(tmp_path / "run").tasks
    assert {name: task.attributes for name, task in tasks.items()} == {
        "coating": {"kind": "research"},
        "wetland": {"kind": "review"},
    }


def test_mode_is_kept_on_the_report() -> None:
    dataset = read(EXAMPLE, [InputFile(file) for file in sorted(EXAMPLE.glob("reports/*.jsonl"))])
    modes = {case.report.system: case.report.mode for case in dataset.cases()}
    assert modes == {"osprey": "end_to_end", "osprey (isolated)": "isolated", "plover": "end_to_end"}


def test_bad_lines_are_rejected_and_missing_files_are_errors(tmp_path: Path) -> None:
    papers, reports = tmp_path / "papers.jsonl", tmp_path / "s.jsonl"
    papers.write_text('{"id": "1", "question": "q"}\n{"id": 2}\n', encoding="utf-8")
    reports.write_text(json.dumps({"id": "1", "report": "r"}) + "\n[]\n", encoding="utf-8")
    dataset = read(tmp_path, [InputFile(reports)])
    assert [row.line for row in dataset.rejected] == [2, 2]
    assert [located.load().text for located in dataset.reports] == ["r"]
    with pytest.raises(FormatError, match="papers"):
        read(tmp_path / "nowhere", [InputFile(reports)])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_question_fills_its_prompt(language: str) -> None:
    book = PromptBook()
    for kind in (LabelStatements, SameSubtask):
        fields = {name for name in kind.__struct_fields__ if name not in Question.__struct_fields__}
        assert book.get(kind.prompt, language).placeholders == fields
        assert book.get(kind.prompt, language).language == language
