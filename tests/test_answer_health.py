"""What a judge says by question type: counted alike in any order, shown everywhere, told of where it never varies."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.commands.evaluate import RunResult, evaluate
from adjudge.engine.commands.notices import print_leaderboard
from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.run import Run
from adjudge.engine.runs.tallies import AnswersOfRun
from adjudge.engine.statistics.notes import notes_on
from adjudge.engine.tables.markdown import leaderboard_markdown
from adjudge.judges import Asked, Context, Judgment, Usage
from adjudge.scoring.answers.preferences import BetterOfTwo, Preferred
from adjudge.scoring.contract.answers import Answers, AnswerTally, told, values
from adjudge.scoring.contract.scorecard import Scorecard
from adjudge.scoring.deepresearch_bench.fact_questions import Backed, Verdicts
from adjudge.scoring.deepresearch_bench.race import MarkedPair, Pair, PairMarks
from adjudge.scoring.rubrics.asking import ItemLevels, Level, PointsGiven, RubricItems, RubricPoints
from tests.examples_of_questions import example, question_types
from tests.exposition import by, samples
from tests.random_judge import random_judge
from tests.worlds import world

CONTEXT = Context.of(report="r")


def points(*allowed: float) -> RubricPoints:
    return RubricPoints(context=CONTEXT, task="t", criterion="c", values=allowed)


@pytest.mark.parametrize(
    ("question", "answer", "said", "ahead"),
    [
        (
            Backed(context=CONTEXT, statements=("a", "b")),
            Verdicts(items={"c01": "supported", "c02": "unknown"}),
            ["supported", "unknown"],
            [],
        ),
        (points(0, 3), PointsGiven(points=3), ["most"], []),
        (points(0, -5), PointsGiven(points=0), ["fewest"], []),
        (points(-5, 0), PointsGiven(points=-5), ["most"], []),
        (points(0, 1, 3), PointsGiven(points=1), ["between"], []),
        (points(0, 3), PointsGiven(points=2.6), ["most"], []),
        (
            RubricItems(context=CONTEXT, task="t", items=("a", "b"), levels=(0, 1, 2)),
            ItemLevels(items={"c01": Level(level=1), "c02": Level(level=0)}),
            ["between", "fewest"],
            [],
        ),
        (
            PairMarks(context=CONTEXT, criteria=("a", "b", "c"), article_b="b"),
            MarkedPair(items={"c01": Pair(a=7, b=6.5), "c02": Pair(a=3, b=3), "c03": Pair(a=0, b=10)}),
            ["7", "6.5", "3", "3", "0", "10"],
            [1, 0, -1],
        ),
        (BetterOfTwo(context=CONTEXT, task="t", second="s"), Preferred(better="second"), ["second"], [-1]),
        (BetterOfTwo(context=CONTEXT, task="t", second="s"), Preferred(better="tie"), ["tie"], [0]),
    ],
)
def test_choices_and_leads_of_an_answer(
    question: Any, answer: Any, said: list[str], ahead: list[int]
) -> None:
    found = told(question, judgment(answer))
    assert found.said == Counter(said)
    assert [found.first, found.second, found.equal] == [ahead.count(sign) for sign in (1, -1, 0)]
    assert set(said) <= set(values(type(answer)))


async def test_any_answer_chooses_among_the_values_of_its_type() -> None:
    """Of every question type there is: what is counted is bounded by the type, whatever the judge says."""
    judge, chosen = random_judge(1), 0
    for kind in question_types():
        question = example(kind)
        for repeat in range(5):
            reply = await judge.answer(question, Asked(key=bytes([repeat]) * 16))
            if reply.answer is None:
                continue
            found = told(question, judgment(reply.answer)).said
            assert set(found) <= set(values(kind.answer)), kind
            chosen += sum(found.values())
    assert chosen > 200


def judgment(answer: Any, reason: Any = None, ending: str = "stop") -> Judgment[Any]:
    return Judgment(
        key=b"k" * 16,
        group=b"g" * 16,
        question="RubricPoints",
        answer=answer,
        status="unscored" if answer is None else "scored",
        reason=reason,
        text="",
        finish_reason=ending,
        usage=Usage(),
        seconds=0.0,
        judge="j",
        engine="e",
        written_at=0,
    )


def test_endings_are_told_apart() -> None:
    question = points(0, 1)
    said = PointsGiven(points=1)
    for one, expected in (
        (judgment(said), {"cut": 0, "looped": 0, "unscored": 0}),
        (judgment(said, ending="length (90), stop (180)"), {"cut": 1, "looped": 0, "unscored": 0}),
        (judgment(None, "answer_truncated", "length"), {"cut": 1, "looped": 0, "unscored": 1}),
        (judgment(None, "answer_truncated", "loop"), {"cut": 0, "looped": 1, "unscored": 1}),
        (judgment(None, "judge_timeout", ""), {"cut": 0, "looped": 0, "unscored": 1}),
    ):
        found = told(question, one)
        assert {name: getattr(found, name) for name in expected} == expected
        assert found.questions == 1 and found.choices == (one.answer is not None)


counts = st.builds(
    Answers,
    questions=st.integers(0, 5),
    said=st.dictionaries(st.sampled_from(["met", "unmet"]), st.integers(1, 9)),
    equal=st.integers(0, 3),
)


@given(st.lists(st.tuples(st.sampled_from("ab"), counts)), st.randoms())
def test_tally_is_the_same_in_any_order(found: list[tuple[str, Answers]], random: Any) -> None:
    def total(several: list[tuple[str, Answers]]) -> dict[str, Answers]:
        tally = AnswerTally()
        for name, one in several:
            tally.add(name, one)
        return tally.result()

    first = total(found)
    random.shuffle(found)
    assert msgspec.json.encode(total(found)) == msgspec.json.encode(first)
    assert sum(one.choices for one in first.values()) == sum(one.choices for _, one in found)


def test_entropy_is_that_of_the_shares() -> None:
    assert Answers(said={"met": 9}).entropy == 0.0 == Answers().entropy
    assert Answers(said={"met": 4, "unmet": 4}).entropy == 1.0
    assert Answers(said={"a": 1, "b": 1, "c": 2}).entropy == pytest.approx(1.5)
    assert math.copysign(1, Answers(said={"met": 1}).entropy) == 1.0


def evaluated(folder: Path) -> RunResult:
    return evaluate(RunConfig.load(folder / "adjudge.yaml"))


def test_answers_stand_in_every_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world(tmp_path, systems=3, tasks=2)
    result = evaluated(tmp_path)
    run = Run.open(tmp_path / "run")
    (types,) = run.record.answers.values()
    (one,) = types.values()
    assert one.questions == 60 and one.choices == 60 and one.words == "points for one rubric"
    assert run.board is not None and run.board.answers == run.record.answers == result.leaderboard.answers
    assert sum(sum(answers.choices for answers in card.answers.values()) for card in run.cards) == 60

    share = f"most {one.said['most'] / 60:.0%}"
    print_leaderboard(result.leaderboard, None)
    texts = {
        "terminal": capsys.readouterr().out,
        "markdown": leaderboard_markdown(result.leaderboard),
        "page": (tmp_path / "run" / "leaderboard.html").read_text(),
    }
    for where, text in texts.items():
        assert "Answers by question type" in text and share in text, where
    found = samples((tmp_path / "run" / "metrics.prom").read_text())
    said = {
        label: count for (_, label), count in by(found, "adjudge_answers_total", "question", "answer").items()
    }
    assert said == one.said

    evaluated(tmp_path)  # from the store
    assert Run.open(tmp_path / "run").record.answers == run.record.answers


def card(types: dict[str, Answers]) -> Scorecard:
    return Scorecard(
        protocol="race",
        system="s",
        task_id="1",
        sample=0,
        repeat=0,
        scores={},
        status="scored",
        answers=types,
    )


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (Answers(words="marks", said={"5": 20}), "race: marks: all 20 answers are the same (5)"),
        (Answers(words="marks", said={"5": 19}), None),
        (Answers(words="marks", said={"5": 19, "6": 1}), None),
        (
            Answers(said={"5": 30, "6": 10}, equal=20),
            "race: PairMarks: both texts get the same mark every time",
        ),
        (Answers(said={"5": 30, "6": 10}, equal=19, first=1), None),
    ],
)
def test_type_without_variety_is_noted(one: Answers, said: str | None, tmp_path: Path) -> None:
    world(tmp_path, systems=1, tasks=1)
    evaluated(tmp_path)
    seen = AnswersOfRun()
    seen.take(card({"PairMarks": one}))
    record = msgspec.structs.replace(Run.open(tmp_path / "run").record, constant={}, answers=seen.result())
    assert isinstance(record, RunRecord)
    notes = [note for note in notes_on([record], [], []) if note.startswith("race: ")]
    assert len(notes) == (said is not None) and all(note.startswith(said or "?") for note in notes)
