"""Rubrics: the file of criteria, the arithmetic, missing answers and their bounds, malformed replies."""

import asyncio
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from adjudge.judges import Context, LexicalJudge, Reply, ScriptedJudge
from adjudge.judges.chat import messages
from adjudge.judges.schema import schema_of
from adjudge.prompts import PromptBook
from adjudge.scoring.contract.case import Case, GoldError, Report, Task
from adjudge.scoring.contract.protocol import score_case
from adjudge.scoring.contract.reasons import CAUSES
from adjudge.scoring.contract.scorecard import Bounds
from adjudge.scoring.rubrics.asking import PointsGiven, RubricItems, RubricPoints
from adjudge.scoring.rubrics.criteria import CriteriaError, Criterion, load_criteria, rubric_score, tag_score
from adjudge.scoring.rubrics.rubrics import Rubrics
from tests.examples import shipped
from tests.tools import DirectTools

EXAMPLE = shipped("rubrics")

TEXT = "The dose is 5 mg/kg [1]. Three drugs were compared: A, B and C."


def case(criteria, text=TEXT, **fields):
    gold = {"rubrics": msgspec.Raw(json.dumps(criteria).encode())} if criteria is not None else {}
    task = Task(id="1", prompt="Compare the drugs.", gold=gold, **fields)
    return Case(task=task, report=Report(task_id="1", system="A", text=text))


def points(**by_criterion):
    """A judge that gives each criterion the points named."""
    return ScriptedJudge(lambda question: PointsGiven(points=by_criterion[question.criterion]))


def sixty():
    return [{"criterion": f"c{i}", "points": 1 + i % 3, "tags": [f"t{i % 2}"]} for i in range(60)]


class TestArithmetic:
    criteria = (
        Criterion(criterion="a", points=3),
        Criterion(criterion="b", values=(0, 1, 2)),
        Criterion(criterion="c", points=-4),
    )

    def test_score_is_points_over_positive_points(self):
        given_points = list(zip(self.criteria, (3, 1, -4), strict=True))
        assert rubric_score(given_points) == pytest.approx(0 / 5)
        assert rubric_score(given_points[:2]) == pytest.approx(4 / 5)

    def test_score_may_be_negative(self):
        assert rubric_score(list(zip(self.criteria, (0, 0, -4), strict=True))) == pytest.approx(-0.8)

    def test_penalties_alone_are_scored_against_their_sum(self):
        assert rubric_score([(self.criteria[2], -4)]) is None
        assert tag_score([(self.criteria[2], -4)]) == -1
        assert tag_score([(self.criteria[2], 0)]) == 0

    @given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=30))
    def test_positive_criteria_stay_between_0_and_1(self, rows):
        pairs = [(Criterion(criterion="x", points=full), full if met else 0) for full, met in rows]
        score = rubric_score(pairs)
        assert score == sum(value for _, value in pairs) / sum(full for full, _ in rows)
        assert 0 <= score <= 1


class TestCriteria:
    @pytest.mark.parametrize(
        "row",
        [
            {"criterion": " ", "points": 1},
            {"criterion": "x"},
            {"criterion": "x", "points": 0},
            {"criterion": "x", "points": -1e308},
            {"criterion": "x", "values": [0, 1e10]},
            {"criterion": "x", "values": [1, 1]},
            {"criterion": "x", "points": 5, "values": [0, 1]},
            {"criterion": "x", "points": 1, "weight": 2},
            {"criterion": "x", "values": list(range(102))},
            {"criterion": 7, "points": 1},
        ],
    )
    def test_senseless_row_is_refused_with_its_line(self, tmp_path, row):
        file = tmp_path / "own.jsonl"
        file.write_text('{"criterion": "fine", "points": 1}\n' + json.dumps(row) + "\n")
        with pytest.raises(CriteriaError, match=r"own\.jsonl:2"):
            load_criteria(str(file))

    def test_infinite_points_are_refused(self, tmp_path):
        file = tmp_path / "own.yaml"
        file.write_text("- {criterion: x, points: .inf}\n")
        with pytest.raises(CriteriaError, match=r"own\.yaml:1"):
            load_criteria(str(file))

    def test_oversized_file_is_refused_unread(self, tmp_path):
        file = tmp_path / "own.jsonl"
        with file.open("wb") as sparse:
            sparse.truncate(20_000_001)
        with pytest.raises(CriteriaError, match=r"own\.jsonl: larger than 20000000 bytes"):
            load_criteria(str(file))

    def test_both_file_forms_are_equal(self, tmp_path):
        lines, yaml = tmp_path / "own.jsonl", tmp_path / "own.yaml"
        lines.write_text(
            '{"criterion": "数据准确", "points": 2, "tags": ["f"]}\n\n{"criterion": "b", "values": [-1, 0]}\n'
        )
        yaml.write_text(
            "- criterion: 数据准确\n  points: 2\n  tags: [f]\n- {criterion: b, values: [-1, 0]}\n"
        )
        assert load_criteria(str(lines)) == load_criteria(str(yaml))

    @pytest.mark.parametrize(
        ("name", "head", "separator"),
        [("own.csv", b"\xef\xbb\xbf", ","), ("own.csv", b"", ";"), ("own.tsv", b"", "\t")],
    )
    def test_table_has_a_criterion_a_row(self, tmp_path, name, head, separator):
        rows = (
            ("Criterion", "points", "values", "tags", "task"),
            ('"a, b; c"', "2", "", '"f; g"', "1"),
            ("",) * 5,
        )
        rows = (*rows, ('"d ""e"""', "", '"-1;0"', "", ""))
        file = tmp_path / name
        file.write_bytes(head + "\r\n".join(separator.join(row) for row in rows).encode())
        assert load_criteria(str(file)) == (
            Criterion(criterion="a, b; c", points=2, tags=("f", "g"), task="1"),
            Criterion(criterion='d "e"', values=(-1, 0)),
        )

    @pytest.mark.parametrize(
        ("rows", "said"),
        [
            ("criterion,points\na,two\n", r"own\.csv:2: Expected `float \| null`, got `str` in `points`"),
            ("criterion,points\na,b,1\n", "line 2 has more cells than the first; put quotation marks around"),
            ('criterion,points\n"a,1\n', "unexpected end of data"),
            ("text,points\na,1\n", "unknown field `text`; a criterion is"),
        ],
    )
    def test_table_that_is_no_rubric_is_refused(self, tmp_path, rows, said):
        file = tmp_path / "own.csv"
        file.write_text(rows)
        with pytest.raises(CriteriaError, match=said):
            load_criteria(str(file))

    def test_line_separators_inside_a_string_do_not_end_a_line(self, tmp_path):
        file = tmp_path / "own.jsonl"
        file.write_bytes('{"criterion": "a\u2028b\u2029c\x85d", "points": 1}\r\n"e Yes=2, No=0"\n'.encode())
        assert [one.criterion for one in load_criteria(str(file))] == [
            "a\u2028b\u2029c\x85d",
            "e Yes=2, No=0",
        ]

    def test_changed_file_is_read_again(self, tmp_path):
        file = tmp_path / "own.jsonl"
        file.write_text('{"criterion": "a", "points": 1}\n')
        assert len(load_criteria(str(file))) == 1
        file.write_text('{"criterion": "a", "points": 1}\n{"criterion": "b", "points": 1}\n')
        assert len(load_criteria(str(file))) == 2

    @pytest.mark.parametrize("content", [b"", b"[1", b"\xff\xfe", b"- a: [", b"3"])
    def test_hostile_files_are_refused(self, tmp_path, content):
        for name in ("own.jsonl", "own.yaml"):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(CriteriaError, match=name):
                load_criteria(str(tmp_path / name))
        with pytest.raises(CriteriaError, match="cannot be read"):
            load_criteria(str(tmp_path))

    def test_protocol_with_a_bad_file_cannot_be_made(self, tmp_path):
        with pytest.raises(CriteriaError, match="cannot be read"):
            Rubrics(file=str(tmp_path / "none.jsonl"))


class TestQuestion:
    question = RubricPoints(
        context=Context.of(report=TEXT), task="Compare.", criterion="States a dose.", values=(0, 1, 2.5)
    )

    def test_schema_allows_only_the_values_of_the_criterion(self):
        assert schema_of(self.question, True)["properties"]["points"]["enum"] == [0, 1, 2.5]

    @pytest.mark.parametrize("language", ["en", "zh"])
    def test_report_comes_first_and_every_field_is_fenced(self, language):
        question = msgspec.structs.replace(self.question, language=language)
        user = messages(question, PromptBook(), schema_of(question, True), b"s")[1]["content"]
        assert (
            user.index(TEXT) < user.index("Compare.") < user.index("States a dose.") < user.index("0, 1, 2.5")
        )
        assert user.count("<<") == 4

    def test_lexical_judge_answers_within_the_values(self):
        assert self.question.lexical().points in self.question.values
        unseen = msgspec.structs.replace(self.question, criterion="Mentions volcanic eruptions on Iceland.")
        assert unseen.lexical().points == 0
        seen = msgspec.structs.replace(self.question, criterion="Three drugs were compared.")
        assert seen.lexical().points == 2.5


class TestScore:
    async def test_scores_include_clipped_and_per_tag(self):
        criteria = [
            {"criterion": "a", "points": 3, "tags": ["facts", "x"]},
            {"criterion": "b", "values": [0, 1, 2], "tags": ["facts"]},
            {"criterion": "c", "points": -6, "tags": ["faults"]},
        ]
        tools = DirectTools(points(a=3, b=1, c=-6))
        card = await score_case(Rubrics(), case(criteria), tools)
        assert card.status == "scored"
        assert card.scores == {
            "score": pytest.approx(-0.4),
            "score_clipped": 0,
            "score_mean_clipped": pytest.approx(-0.4),
            "share": 0.75,
            "pass_rate": pytest.approx(1 / 3),
            "tag:facts": pytest.approx(0.8),
            "share:facts": 0.75,
            "pass_rate:facts": 0.5,
            "tag:x": 1,
            "share:x": 1,
            "pass_rate:x": 1,
            "tag:faults": -1,
            "pass_rate:faults": 0,
        }
        assert [line.outcome.words for line in card.evidence] == ["3 of 3", "1 of 2", "-6 of 0"]
        assert len({question.context.digest for question in tools.questions}) == 1

    async def test_file_and_gold_criteria_add_up_for_their_task(self, tmp_path):
        file = tmp_path / "own.jsonl"
        file.write_text(
            '{"criterion": "f", "points": 1}\n{"criterion": "one", "points": 1, "task": "1"}\n'
            '{"criterion": "two", "points": 1, "task": "2"}\n'
        )
        tools = DirectTools(points(f=1, one=0, g=2))
        card = await score_case(Rubrics(file=str(file)), case([{"criterion": "g", "points": 2}]), tools)
        assert [question.criterion for question in tools.questions] == ["g", "f", "one"]
        assert card.scores["score"] == 0.75
        alone = await score_case(Rubrics(file=str(file)), case(None), DirectTools(points(f=1, one=0)))
        assert alone.scores["score"] == 0.5

    def test_criteria_for_other_tasks_are_named(self, tmp_path):
        file = tmp_path / "criteria.jsonl"
        file.write_text(
            '{"criterion": "f", "points": 1, "task": "2"}\n{"criterion": "g", "points": 1, "task": "3"}\n'
        )
        with pytest.raises(
            GoldError, match=r"task 1: no criterion of .*criteria.jsonl is for it, but for '2', '3'"
        ):
            Rubrics(file=str(file)).criteria(case(None))

    @pytest.mark.parametrize(
        ("criteria", "reason"),
        [
            (None, "gold_missing"),
            ([], "gold_invalid"),
            ([{"criterion": "c", "points": -1}], "gold_invalid"),
            ([{"criterion": "c"}], "gold_invalid"),
            ("nonsense", "gold_invalid"),
        ],
    )
    @pytest.mark.parametrize("text", [TEXT, " "])
    async def test_invalid_gold_leaves_the_case_unscored(self, criteria, reason, text):
        card = await score_case(Rubrics(), case(criteria, text), DirectTools(ScriptedJudge([])))
        assert card.scores == dict.fromkeys(
            ["score", "score_clipped", "score_mean_clipped", "share", "pass_rate"]
        )
        assert set(card.reasons.values()) == {reason}
        assert CAUSES[reason] == "gold"

    async def test_empty_report_gets_the_lowest_score_of_its_task(self):
        criteria = [{"criterion": "a", "points": 2, "tags": ["t"]}, {"criterion": "b", "points": -3}]
        card = await score_case(Rubrics(), case(criteria, " \n"), DirectTools(ScriptedJudge([])))
        assert card.scores == {
            "score": -1.5, "score_clipped": 0, "score_mean_clipped": -1.5, "share": 0, "pass_rate": 0,
            "tag:t": 0, "share:t": 0, "pass_rate:t": 0,
        }  # fmt: skip
        assert (card.status, card.reason) == ("scored", "report_empty")

    async def test_lexical_judge_scores_everything(self):
        card = await score_case(Rubrics(), case(sixty()), DirectTools(LexicalJudge()))
        assert card.status == "scored"


class TestMissing:
    @staticmethod
    def judge(missing, reply="judge_unavailable"):
        def opinion(question):
            return reply if question.criterion in missing else PointsGiven(points=question.values[-1])

        return ScriptedJudge(opinion)

    async def test_missing_answers_leave_a_value_and_bounds(self):
        protocol = Rubrics(min_answered=0.9)
        card = await score_case(protocol, case(sixty()), DirectTools(self.judge({"c0", "c2", "c4"})))
        lost = 1 + 3 + 2
        assert card.scores["score"] == 1
        assert card.bounds["score"] == Bounds(pytest.approx((120 - lost) / 120), 1, 57, 60)
        assert card.bounds["tag:t1"] == Bounds(1, 1, 30, 30)
        assert set(card.scores) == {metric.name for metric in protocol.metrics_of(case(sixty()))}
        assert card.status == "scored"

    async def test_too_few_answers_leave_bounds_alone(self):
        missing = {f"c{i}" for i in range(13)}
        card = await score_case(Rubrics(), case(sixty()), DirectTools(self.judge(missing)))
        assert card.scores["score"] is None
        assert card.reasons["score"] == "judge_unavailable"
        assert (card.bounds["score"].answered, card.bounds["score"].parts) == (47, 60)
        assert 0 < card.bounds["score"].low < card.bounds["score"].high == 1

    async def test_no_answer_leaves_worst_and_best(self):
        tools = DirectTools(ScriptedJudge(lambda question: "judge_unavailable"))
        card = await score_case(Rubrics(min_answered=0.01), case(sixty()), tools)
        assert (card.scores["score"], card.bounds["score"]) == (None, Bounds(0, 1, 0, 60))

    async def test_missing_penalty_can_only_lower_the_score(self):
        criteria = [{"criterion": "a", "points": 4}, {"criterion": "b", "points": -2}]
        card = await score_case(Rubrics(min_answered=0.5), case(criteria), DirectTools(self.judge({"b"})))
        assert (card.scores["score"], card.bounds["score"]) == (1, Bounds(0.5, 1, 1, 2))

    @given(st.lists(st.tuples(st.integers(-5, 9).filter(bool), st.integers(0, 2)), min_size=2, max_size=12))
    async def test_bounds_hold_for_any_missing_answers(self, rows):
        criteria = [{"criterion": f"c{i}", "points": full} for i, (full, _) in enumerate(rows)]
        criteria.append({"criterion": "sure", "points": 1})
        state = {f"c{i}": seen for i, (_, seen) in enumerate(rows)} | {"sure": 1}

        def opinion(question):
            seen = state[question.criterion]
            return "judge_timeout" if seen == 2 else PointsGiven(points=question.values[seen])

        card = await score_case(
            Rubrics(min_answered=0.01), case(criteria), DirectTools(ScriptedJudge(opinion))
        )
        full = sum(c["points"] for c in criteria if c["points"] > 0)
        for filled in (0, 1):
            values = [
                sorted((0, c["points"]))[filled if state[c["criterion"]] == 2 else state[c["criterion"]]]
                for c in criteria
            ]
            assert card.bounds["score"].low - 1e-9 <= sum(values) / full
            assert sum(values) / full <= card.bounds["score"].high + 1e-9

    @pytest.mark.parametrize(
        ("reply", "reason"),
        [
            ('{"analysis": "x", "points": 1', "judge_unparseable"),
            ('{"analysis": "x", "points": "1"}', "judge_unparseable"),
            ('{"analysis": "x", "points": true}', "judge_unparseable"),
            ('{"analysis": "x", "points": 0.5}', "judge_unparseable"),
            ('{"analysis": "x"}', "judge_unparseable"),
            ('{"points": 1, "score": 1}', "judge_unparseable"),
            ("[1]", "judge_unparseable"),
            ("null", "judge_unparseable"),
            ("", "judge_unparseable"),
            ("I cannot help with that.", "judge_unparseable"),
            (Reply(reason="judge_refused", finish_reason="content_filter"), "judge_refused"),
            ("judge_timeout", "judge_timeout"),
            ("judge_unsupported", "judge_unsupported"),
            ("answer_truncated", "answer_truncated"),
            ("context_overflow", "context_overflow"),
        ],
    )
    async def test_malformed_replies_are_not_blamed_on_the_report(self, reply, reason):
        card = await score_case(
            Rubrics(min_answered=1), case(sixty()), DirectTools(self.judge({"c1"}, reply))
        )
        assert card.scores["score"] is None
        assert card.reasons["score"] == card.reason == reason
        assert CAUSES[reason] == "infrastructure"
        assert card.scores["tag:t0"] == 1


@pytest.mark.parametrize(
    "judge",
    [LexicalJudge(), ScriptedJudge(lambda q: PointsGiven(points=q.values[-1]))],
    ids=["lexical", "scripted"],
)
def test_files_become_a_leaderboard(judge, tmp_path, monkeypatch):
    monkeypatch.setattr("adjudge.engine.evaluation.assembly.make_judge", lambda *parts: judge)
    folder = {"out": str(tmp_path / "run"), "store": str(tmp_path / "store")}
    config = RunConfig.load(EXAMPLE / "adjudge.yaml", **folder)
    first, second = evaluate(config), evaluate(config)
    assert (first.scorecards, first.unscored, first.rejected) == (4, 0, ())
    # Equal questions about several reports are asked once, and found by each of them the second time.
    assert second.from_judge == 0 and second.from_store >= first.from_judge > 0
    boards = {board.metric: board for board in second.leaderboard.metrics}
    assert [standing.system for standing in boards["score"].standings] == ["wren", "finch"]
    assert {"score", "score_clipped", "tag:facts"} <= set(boards)


def test_equal_points_are_one_question_in_any_notation():
    for first, second in ((3, 3.0), (3.5, 3.5), (-0.0, 0.0)):
        found = [Criterion(criterion="x", values=(value, 7)).options for value in (first, second, first)]
        assert len({repr(options) for options in found}) == 1 and "." in repr(found[0])


@given(st.lists(st.floats(-9, 9), min_size=2, max_size=6, unique=True) | st.floats(-9, 9).filter(bool))
def test_worst_and_best_are_the_ends_of_the_options(said):
    rule = {"points": said} if isinstance(said, float) else {"values": tuple(said)}
    criterion = Criterion(criterion="x", **rule)
    ends = (criterion.options[0], criterion.options[-1])
    assert repr((criterion.worst, criterion.best)) == repr(ends)


def test_figures_are_made_once_for_equal_criteria():
    class Counted(Rubrics, frozen=True, kw_only=True):
        def figures(self, criteria):
            made.append(criteria)
            return super().figures(criteria)

    made: list[object] = []
    for text in (TEXT, f"{TEXT} More."):
        protocol = Counted()
        card = asyncio.run(score_case(protocol, case(sixty(), text), DirectTools(LexicalJudge())))
        assert list(card.scores) == [metric.name for metric in protocol.metrics_of(case(sixty()))]
    assert len(made) == 1


SKARN = "Says that the lighthouse of Skarn is 47 metres high."


@pytest.mark.parametrize(
    ("criterion", "text", "points"),
    [
        (SKARN, "The lighthouse of Skarn is 47 metres high.", 2),
        (SKARN, "The 1,047 steps of the lighthouse of Skarn are 47.0 metres high.", 2),
        (SKARN, "The lighthouse of Skarn is 74 metres high.", 0),
        (SKARN, "The lighthouse of Skarn is many metres high.", 0),
        ("Says that 12 % of 80 orchards were lost.", "Of the orchards, 12 % were lost.", 1),
        ("Says that 12 % of 80 orchards were lost.", "12 % of the 80 orchards were lost.", 2),
        ("Names at least 3 orchards.", "At least these orchards: Ash, Birch, Cedar.", 2),
        ("Names (1) orchards and (2) lighthouses.", "Orchards and lighthouses.", 2),
        ("Names orchards? Both=2, One=1, None=0", "Orchards: Ash.", 2),
        ("说明钟楼建于1720年。", "钟楼建于1720年。", 2),
        ("说明钟楼建于1720年。", "钟楼建于1702年。", 0),
        ("至少3座钟楼。", "至少是座钟楼。", 2),
    ],
)
def test_embedded_judge_wants_the_figures_of_a_criterion(criterion: str, text: str, points: int) -> None:
    alone = RubricPoints(
        context=Context.of(report=text), task="Tell me of it.", criterion=criterion, values=(0, 1, 2)
    )
    assert alone.lexical().points == points
    listed = RubricItems(context=alone.context, task=alone.task, items=(criterion,), levels=(0.0, 1.0, 2.0))
    assert [one.level for one in listed.lexical().items.values()] == [points]
