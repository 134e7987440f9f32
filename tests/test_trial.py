"""Is it a judge? Planted controls tell a judge from what only answers."""

import asyncio
import json
import re
from functools import cache, partial

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.trial.controls import CONTROLLED, controls
from adjudge.engine.trial.material import Material, at_hand, negated, shipped, with_another_figure
from adjudge.engine.trial.trial import Trial, materials_of, trial, types_of
from adjudge.judges import Asked, Judge, JudgeIdentity, LexicalJudge, Question, Reply, ScriptedJudge
from adjudge.judges.lexical import figures
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.deepresearch_bench.fact_questions import Backed
from adjudge.scoring.deepresearch_bench.race import ArticleMarks, OverallMark, PairMarks
from adjudge.scoring.dr3_eval.questions import ChecklistMet, Grounded, Recall
from adjudge.scoring.pairwise.pairwise import BetterReport
from adjudge.scoring.rubrics.asking import ExplainedItems, RubricItems, RubricPoints
from tests.commands import run
from tests.mock_openai import Call, MockOpenAI, completion
from tests.planted import Oracle, constant, made_material
from tests.random_judge import random_judge
from tests.worlds import lines, world

FAMILIES = (Backed, Grounded, RubricPoints, RubricItems, ExplainedItems, ChecklistMet, Recall, PairMarks, BetterReport,
            ArticleMarks, OverallMark)  # fmt: skip


@cache
def shipped_material() -> dict[str, list[Material]]:
    return materials_of(())


def tried(judge: Judge, kinds=FAMILIES, **more) -> Trial:
    return asyncio.run(trial(judge, shipped_material(), kinds, **more))


@cache
def oracle() -> Oracle:
    return Oracle([one for own in shipped_material().values() for one in own])


def perfect(question: Question) -> str:
    return oracle()(question)


def erring(seed: int, share: float) -> ScriptedJudge:
    return oracle().erring(seed, share)


def better(task: str, first: str, second: str) -> str:
    return oracle().better(task, first, second)


def test_perfect_judge_passes_every_question_type():
    found = tried(ScriptedJudge(perfect))
    assert (found.outcome, found.why, found.reasons, found.languages) == ("passed", (), {}, ("en", "zh"))
    for one in found.types:
        assert one.separation == 1.0 and one.noise == 0.0 and not one.length and not one.position
        assert all(kind.rate == 1.0 and kind.n for kind in one.kinds), one.question


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kind", FAMILIES, ids=lambda kind: kind.__name__)
def test_constant_judge_fails_in_every_question_type(kind: type[Question], last: bool):
    found = tried(ScriptedJudge(partial(constant, last)), [kind])
    assert found.outcome == "failed"
    assert found.types[0].separation == 0.5
    assert any("every answer is the same" in why for why in found.why)


@pytest.mark.parametrize("kind", FAMILIES, ids=lambda kind: kind.__name__)
def test_random_judge_fails_in_every_question_type(kind: type[Question]):
    assert {tried(erring(seed, 1.0), [kind]).outcome for seed in range(20)} == {"failed"}


def test_judge_that_errs_once_in_thirty_answers_passes():
    outcomes = [tried(erring(seed, 1 / 30), again=0).outcome for seed in range(20)]
    assert outcomes.count("passed") >= 19


def test_lexical_judge_is_behind_one_that_is_always_right():
    """It sees a plain denial in a statement's own words, and not that half of a criterion is met."""
    found = tried(LexicalJudge(), [Backed, RubricPoints, PairMarks])
    rates = {kind.kind: kind.rate for one in found.types for kind in one.kinds}
    assert rates["stated by the page"] == rates["the same, negated"] == 1.0 and rates["half met"] < 0.9
    assert found.types[1].separation == 1.0


def test_judge_that_prefers_a_position_or_length_fails():
    def first(question: Question) -> str:
        right = better(question.task, question.context["first"], question.context["second"])
        return json.dumps({"better": "first" if right == "tie" else right})

    def longer(question: Question) -> str:
        ahead = len(question.context["first"]) - len(question.context["second"])
        return json.dumps({"better": "first" if ahead > 0 else "second" if ahead < 0 else "tie"})

    by_position, by_length = (tried(ScriptedJudge(one), [BetterReport]) for one in (first, longer))
    assert by_position.outcome == by_length.outcome == "failed"
    assert by_position.types[0].position == pytest.approx(0.6) and by_position.types[0].separation == 1.0
    assert by_length.types[0].length == pytest.approx(1.0) and not by_length.types[0].position
    assert any("shown first is favoured by +0.60" in why for why in by_position.why)
    assert any("length alone is worth +1.00" in why for why in by_length.why)


class Fickle:
    """Answers rightly, and wrongly when it is asked again."""

    identity = JudgeIdentity("fickle", fingerprint="fickle", sampling="none")

    async def answer(self, question: Question, asked: Asked) -> Reply:
        says = json.loads(perfect(question))["items"]["c01"]
        turned = {"supported": "unsupported", "unsupported": "supported"}[says]
        return Reply(answer=question.typed(Backed.answer(items={"c01": turned if asked.repeat else says})))

    async def close(self) -> None: ...


def test_judge_that_answers_otherwise_when_asked_again_fails():
    found = tried(Fickle(), [Backed])
    assert found.types[0].noise == 1.0 and found.outcome == "failed"
    assert found.why == (f"{Backed.words}: 100% of {found.types[0].again} answers differ when asked again",)


def test_silent_judge_is_unusable_and_gaps_fail():
    dead = tried(ScriptedJudge(lambda _: "judge_timeout"), [Backed])
    assert dead.outcome == "unusable" and dead.reasons == {"judge_timeout": dead.asked}
    gaps = tried(random_judge(1, failing=0.3), [Backed])
    assert gaps.outcome == "failed" and any("without an answer" in why for why in gaps.why)


def test_what_a_run_asks_decides_what_is_tried():
    assert types_of(["RubricPoints", "GradeFields"]) == ([RubricPoints], ["GradeFields"])
    kinds, others = types_of(["GradeFields"])
    assert Backed in kinds and others == ["GradeFields"]
    assert all(controls(kind, shipped("en"), 2) for kind in CONTROLLED)


REPORT = """# Ferries

The ferry to the island of Norrow carried 81,300 people in 2023 [1]. It is 41 metres long [2].

- A crossing takes 25 minutes.
- It cost 4 or 5 crowns, nobody knows.
- It never sails above 9 Beaufort.

## Sources

[1] https://example.org/ferry
[2] https://example.org/ship
"""


def case(task: str, text: str, language: str = "en") -> Case:
    return Case(
        task=Task(id=task, prompt=f"About {task}?", language=language),
        report=Report(task_id=task, system="s", text=text),
    )


def test_statements_state_one_figure_that_their_page_has():
    (found,) = at_hand([case("ferries", REPORT)], "en")
    assert [one.text for one in found.statements] == ["It is 41 metres long.", "A crossing takes 25 minutes."]
    assert all(one.text in one.page for one in found.statements) and "https" not in found.report


def test_reports_at_hand_go_before_shipped_ones():
    longer = "\n".join(f"It is {place} miles to the pier." for place in range(20, 40)) + REPORT
    few, many = (
        materials_of([case("ferries", text), case("ships", text.replace("ferry", "ship"))])["en"]
        for text in (REPORT, longer)
    )
    assert {one.task for one in many} == {"About ferries?", "About ships?"}
    assert {one.task for one in few} > {"About ferries?", "About ships?"}
    assert list(materials_of([case("bateaux", "", "fr")])) == ["fr"]


def test_negation_turns_a_statement_around_in_its_language():
    assert negated("It is 41 metres long.", "en") == "It is not 41 metres long."
    assert negated("A crossing takes 25 minutes.", "en") == "It is not true that A crossing takes 25 minutes."
    assert negated("If it is late, it waits 5 minutes.", "en").startswith("It is not true that If")
    assert negated("渡船长41米。", "zh") == "并非渡船长41米。"


@given(st.lists(st.decimals(0, 10**6, places=1), min_size=1, max_size=8), st.booleans())
def test_another_figure_is_one_that_the_page_does_not_have(stated, whole):
    told = [f"{int(one):,}" if whole else str(one) for one in stated]
    page = " ".join(f"It costs {one} marks." for one in told)
    statement = f"It costs {told[0]} marks."
    other = with_another_figure(statement, page)
    assert other.startswith("It costs ") and other.endswith(" marks.")
    assert len(figures(other)) == 1 and not figures(other) & figures(page)


def test_material_takes_time_in_proportion_to_the_text():
    text = "\n".join(["It is 4 km, [x](y)"] * 20_000 + ["1" * 30_000, "a." * 30_000])
    assert Material.of("en", "t", text).statements == ()


async def honest(mock: MockOpenAI, call: Call) -> web.Response | None:
    """Reads the page, where a statement is asked about."""
    if "c01" not in call.schema.decode():
        return None
    prompt = json.loads(call.messages)[1]["content"]
    page = prompt[: prompt.index(">>")]
    (statement,) = re.findall(r"^c01: (.*)$", prompt, re.MULTILINE)
    said = "supported" if statement in page else "unsupported"
    return completion(json.dumps({"analysis": "", "items": {"c01": said}}))


def fact_run(folder, judge: str):
    page = "https://example.org/ferry"
    lines(folder / "tasks.jsonl", [{"id": "1", "prompt": "About ferries?"}])
    lines(
        folder / "reports.jsonl",
        [{"task_id": "1", "system": "A", "text": f"It is 41 metres long. [x]({page})"}],
    )
    config = folder / "adjudge.yaml"
    config.write_text(json.dumps({
        "tasks": "tasks.jsonl", "reports": ["reports.jsonl"], "protocols": [{"name": "fact", "extraction": "markers"}],
        "judge": judge, "fetch": {"mode": "live"},
    }))  # fmt: skip
    return config


async def test_command_tries_the_judge_of_a_configuration(tmp_path, capsys):
    async with MockOpenAI(fault=honest) as mock:
        config = fact_run(tmp_path, f"openai:{mock.url}#mock")
        code, out, _ = await asyncio.to_thread(run, capsys, "judge", config, "--limit", "4", "--json")
    found = json.loads(out)
    assert (code, found["outcome"], found["judges"][0]["found"]["why"]) == (0, "passed", [])
    (own,) = found["judges"]
    assert [one["question"] for one in own["found"]["types"]] == [Backed.words]
    assert own["found"]["usage"]["prompt_tokens"] and own["found"]["languages"] == ["en"]
    assert not (tmp_path / ".adjudge").exists()


def test_command_says_what_a_judge_gets_right(capsys):
    code, out, _ = run(capsys, "judge", "lexical")
    assert code == 0 and "lexical passes." in out and re.search(r"half met +│ 16 of 24", out)
    code, out, _ = run(capsys, "judge", "lexical", "--markdown", "--limit", "2")
    assert code == 0 and "| the same, negated | 4 of 4 |" in out


def test_command_names_what_is_neither_file_nor_judge(capsys):
    code, _, error = run(capsys, "judge", "lexicle")
    assert code == 2 and "lexicle" in error and "openai:http://HOST:PORT/v1#MODEL" in error


def test_judge_that_cannot_be_reached_is_an_error_in_one_line(capsys):
    code, out, error = run(capsys, "judge", "openai:http://127.0.0.1:9/v1#m")
    assert (code, out) == (1, "") and "127.0.0.1:9" in error


@pytest.mark.parametrize("says", [None, 0.0])
async def test_run_checks_its_judge_before_it_asks(tmp_path, capsys, caplog, monkeypatch, says: float | None):
    """A judge whose answers are drawn by lot, and one that says the same to everything."""
    monkeypatch.setattr("adjudge.engine.commands.judge.WORTH", 20)

    async def constant(mock: MockOpenAI, call: Call) -> web.Response | None:
        if call.is_probe or says is None:
            return None
        return completion(json.dumps({"analysis": "", "points": says}))

    async with MockOpenAI(fault=constant) as mock:
        settings = {"systems": 1, "tasks": 2, "judge": f"openai:{mock.url}#mock"}
        required = world(tmp_path, **settings, judge_check="require")
        code, _, error = await asyncio.to_thread(run, capsys, "evaluate", required)
        assert code == 1 and "fails questions with known answers (" in error and "adjudge judge" in error
        assert not list(tmp_path.glob("store/judgments/*.parquet"))
        code, _, _ = await asyncio.to_thread(run, capsys, "evaluate", world(tmp_path, **settings))
        assert code == 0 and sum("fails questions with known" in one for one in caplog.messages) == 1
        calls = mock.calls
        assert (await asyncio.to_thread(run, capsys, "evaluate", required))[0] == 0  # all is stored
        assert mock.calls == calls


@pytest.mark.parametrize(("worth", "check", "told"), [(20, "warn", 1), (21, "warn", 0), (20, "off", 0)])
async def test_check_is_left_where_it_is_much_beside_the_run(
    tmp_path, capsys, caplog, monkeypatch, worth: int, check: str, told: int
):
    monkeypatch.setattr("adjudge.engine.commands.judge.WORTH", worth)
    async with MockOpenAI() as mock:
        settings = {"systems": 1, "tasks": 2, "judge": f"openai:{mock.url}#mock", "judge_check": check}
        code, _, _ = await asyncio.to_thread(run, capsys, "evaluate", world(tmp_path, **settings))
        assert code == 0 and (mock.calls > 20 + mock.probes) == bool(told)
    assert sum("fails questions with known" in one for one in caplog.messages) == told


async def test_slow_check_does_not_hold_a_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("adjudge.engine.commands.judge.WORTH", 1)
    monkeypatch.setattr("adjudge.engine.commands.judge.CHECK_S", 0.3)

    async def slow(mock: MockOpenAI, call: Call) -> web.Response | None:
        if not call.is_probe and mock.calls < 20:
            await asyncio.sleep(2)
        return None

    async with MockOpenAI(fault=slow) as mock:
        path = world(tmp_path, systems=1, tasks=2, judge=f"openai:{mock.url}#mock")
        code, _, error = await asyncio.to_thread(run, capsys, "evaluate", path)
    assert code == 0, error


def test_one_other_answer_of_few_is_no_noise():
    """Of eight questions that are asked again, one that is answered otherwise may be chance."""
    outcomes = []
    for seed in range(12):
        material = made_material(seed)
        judge = Oracle(material).erring(seed, 1 / 30)
        outcomes.append(asyncio.run(trial(judge, {"en": material})).outcome)
    assert outcomes.count("passed") >= 11
