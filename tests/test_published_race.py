"""RACE in a benchmark's own calls: asked once, resumed, planned, and unscored where the judge fails."""

import asyncio
import json
import pickle
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from adjudge.engine.commands.evaluate import RunResult, evaluate_async
from adjudge.engine.commands.gold import draft_gold
from adjudge.engine.commands.plan import Plan, plan
from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.runs.record import RunRecord
from adjudge.judges import Context
from adjudge.scoring.deepresearch_bench.published_criteria import averaged
from adjudge.scoring.deepresearch_bench.published_race import PublishedMarks, halves, race_wordings
from tests.made_bench import DIMENSIONS, SYSTEM, made_bench, marked, replying_to
from tests.mock_openai import MockOpenAI
from tests.viewing import links, viewing

CLEANED = "A clean report. " * 10


def config(tmp_path: Path, url: str = "http://127.0.0.1:9/v1", out: str = "run", **options: Any) -> RunConfig:
    return RunConfig.of(
        {
            "tasks": str(tmp_path / "bench"),
            "format": "deepresearch-bench",
            "protocols": [{"name": "race", "call": "published", **options}],
            "judge": {"backend": "openai", "url": url, "model": "judge", "retries": 0, "patience_s": 1.0},
            "store": str(tmp_path / "store"),
            "out": str(tmp_path / out),
        }
    )


def scores(result: RunResult) -> dict[tuple[str, str], float | None]:
    table = pq.read_table(Path(result.out) / "scores.parquet").to_pylist()
    return {(row["task_id"], row["metric"]): row["value"] for row in table}


async def test_report_is_cleaned_and_marked_once(tmp_path: Path) -> None:
    made_bench(tmp_path / "bench")
    async with MockOpenAI(fault=replying_to(clean=CLEANED, marks=marked())) as mock:
        first = await evaluate_async(config(tmp_path, mock.url))
        assert mock.calls == 4 and mock.last is not None
        body = json.loads(mock.last.body)
        again = await evaluate_async(config(tmp_path, mock.url, out="again"))
        assert mock.calls == 4
    assert set(body) == {"model", "messages"}
    assert body["messages"][0]["content"].startswith(
        ("MARKS en: Task 1?|A clean", "MARKS zh: Task 2?|A clean")
    )
    assert scores(first) == scores(again)
    assert scores(first)["1", "overall"] == pytest.approx(0.6)
    assert scores(first)["2", "insight"] == pytest.approx(0.6)
    record = RunRecord.read(tmp_path / "run")
    assert record.prompts["race.marks.zh"] and len(record.prompts["race.clean.en"]) == 32


async def test_cleaning_can_be_left_out_or_in_one_language(tmp_path: Path) -> None:
    made_bench(tmp_path / "bench")
    asked = []

    def clean(prompt: str, before: int) -> str:
        asked.append(prompt.split(":")[0])
        return CLEANED

    async with MockOpenAI(fault=replying_to(clean=clean, marks=marked())) as mock:
        await evaluate_async(config(tmp_path, mock.url, cleaning="none"))
        assert asked == []
        await evaluate_async(config(tmp_path, mock.url, cleaning_language="zh"))
        assert asked == ["CLEAN zh", "CLEAN zh"]


async def test_cleaned_articles_are_not_cleaned_again(tmp_path: Path) -> None:
    """By themselves, and said so; an option of one's own goes before."""
    bench = made_bench(tmp_path / "bench") / "data/test_data"
    (bench / "cleaned_data/agent.jsonl").write_bytes((bench / "raw_data/agent.jsonl").read_bytes())
    asked = []

    def clean(prompt: str, before: int) -> str:
        asked.append(prompt)
        return CLEANED

    async with MockOpenAI(fault=replying_to(clean=clean, marks=marked())) as mock:
        for cleaning, calls in (({}, 0), ({"cleaning": "judge"}, 2)):
            made = msgspec.to_builtins(config(tmp_path, mock.url, **cleaning)) | {"articles": "cleaned"}
            result = await evaluate_async(RunConfig.of(made))
            assert len(asked) == calls
            said = any("cleaned articles as they are" in note for note in result.leaderboard.notes)
            assert said == (not calls)


async def test_missing_criteria_are_made_once_for_a_task(tmp_path: Path) -> None:
    made_bench(tmp_path / "bench", criteria=False)
    weights = json.dumps(dict(zip(DIMENSIONS, (0.1, 0.2, 0.3, 0.4), strict=True)))
    criteria = json.dumps([{"criterion": "made", "explanation": "So.", "weight": 1}])
    seen = []

    def marks(prompt: str, before: int) -> str:
        seen.append(prompt)
        return marked()

    fault = replying_to(clean=CLEANED, marks=marks, weights=weights, criteria=criteria)
    async with MockOpenAI(fault=fault) as mock:
        found = scores(await evaluate_async(config(tmp_path, mock.url)))
    assert mock.calls == 2 * (1 + 1 + 5 + 4)
    assert found["1", "overall"] == pytest.approx(0.6)
    assert '"explanation": "So."' in seen[0] and "weight" not in seen[0]


@pytest.mark.parametrize(
    ("replies", "reason", "calls"),
    [
        ({"clean": "short", "marks": ""}, "judge_unparseable", 10 + 3 + 3),
        ({"clean": CLEANED, "marks": "none"}, "judge_unparseable", 1 + 10),
        ({"clean": CLEANED, "marks": json.dumps(DIMENSIONS)}, "judge_unparseable", 1 + 1),
        ({"clean": CLEANED, "marks": marked(float("inf"))}, "judge_unparseable", 1 + 1),
    ],
)
async def test_unusable_replies_leave_the_report_unscored(
    tmp_path: Path, replies: dict[str, str], reason: str, calls: int
) -> None:
    made_bench(tmp_path / "bench")
    async with MockOpenAI(fault=replying_to(**replies)) as mock:
        result = await evaluate_async(config(tmp_path, mock.url))
        assert mock.calls == 2 * calls
    rows = pq.read_table(tmp_path / "run" / "scores.parquet").to_pylist()
    assert {(row["value"], row["low"], row["high"], row["reason"]) for row in rows} == {(None, 0, 1, reason)}
    assert not result.complete


async def test_zero_of_a_lacking_reply_stands_under_the_published_name(tmp_path: Path) -> None:
    made_bench(tmp_path / "bench")
    async with MockOpenAI(fault=replying_to(clean=CLEANED, marks=marked(without="insight"))) as mock:
        result = await evaluate_async(config(tmp_path, mock.url))
    rows = pq.read_table(Path(result.out) / "scores.parquet").to_pylist()
    found = {row["metric"]: row for row in rows if row["task_id"] == "1"}

    def told(name: str) -> list[float]:
        return [found[name][column] for column in ("value", "low", "high", "answered", "parts")]

    assert told("insight") == [0, 0, 1, 0, 1]
    assert told("readability") == [pytest.approx(0.6), pytest.approx(0.6), pytest.approx(0.6), 1, 1]
    value, low, high, answered, parts = told("overall")
    assert value == pytest.approx(0.6) and 0 < low < value < high < 1 and (answered, parts) == (3, 4)


async def test_pointwise_needs_no_reference(tmp_path: Path) -> None:
    made_bench(tmp_path / "bench")
    (tmp_path / "bench/data/test_data/cleaned_data/reference.jsonl").unlink()
    said = marked(target=13, reference=0).replace("article_1_score", "target_score")
    async with MockOpenAI(fault=replying_to(clean=CLEANED, alone=said)) as mock:
        found = scores(await evaluate_async(config(tmp_path, mock.url, variant="pointwise")))
    assert found["1", "overall"] == found["1", "insight"] == 1


async def test_plan_counts_what_a_run_asks(tmp_path: Path) -> None:
    made_bench(tmp_path / "bench", criteria=False)
    planned: Plan = await asyncio.to_thread(plan, config(tmp_path))
    assert planned.questions == {
        "PublishedClean": 2, "PublishedCriteria": 8, "PublishedMarks": 2, "PublishedWeights": 10,
    }  # fmt: skip
    assert planned.stored == 0 and planned.prompt_tokens > 500


def test_missing_prompt_file_is_one_line(tmp_path: Path) -> None:
    made_bench(tmp_path / "bench")
    (tmp_path / "bench/prompt/score_prompt_zh.py").unlink()
    with pytest.raises(ConfigError) as raised:
        plan(config(tmp_path))
    assert f"protocols: race: {tmp_path}/bench/prompt/score_prompt_zh.py: cannot be read" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"call": "publishd"}, "call: 'publishd' is unknown; use own or published"),
        ({"both_orders": True}, "both_orders: unknown key"),
        ({"name": "rubrics"}, "rubrics: has no published calls; leave call: out, or use one of"),
    ],
)
def test_call_and_its_options_are_checked(tmp_path: Path, options: dict[str, str], said: str) -> None:
    made_bench(tmp_path / "bench")
    with pytest.raises(ConfigError, match=said):
        config(tmp_path, **options)


def test_metrics_keep_their_names_under_expected_scores(tmp_path: Path) -> None:
    made_bench(tmp_path / "bench")
    sampled = msgspec.to_builtins(config(tmp_path))
    expecting = RunConfig.of(sampled | {"judge": {"backend": "vllm", "model": "m", "scoring": "expected"}})
    assert [one.metrics for one in expecting.resolved.protocols] == [
        one.metrics for one in config(tmp_path).resolved.protocols
    ]


def test_checkout_path_starts_at_the_configurations_folder(tmp_path: Path) -> None:
    made_bench(tmp_path / "bench")
    file = tmp_path / "adjudge.yaml"
    file.write_text("tasks: bench\nprotocols: [{name: race, call: published, checkout: bench}]\n")
    assert RunConfig.load(file).published_prompts()


@pytest.mark.parametrize(
    ("article", "parts"),
    [
        ("One. Two. Six.", ("One.", "o. Six.")),
        ("no end at all here", ("no end at", " all here")),
        ("", ("", "")),
        ("a.", ("a.", ".")),
    ],
)
def test_halves_are_cut_as_the_code_cuts_them(article: str, parts: tuple[str, str]) -> None:
    assert halves(article) == parts


def test_weights_are_averaged_over_dimensions_all_draws_have() -> None:
    draws = [
        dict(zip(DIMENSIONS, (0.1, 0.2, 0.3, 0.4), strict=True)),
        dict.fromkeys(DIMENSIONS, 0.25) | {"style": 0},
    ]
    assert averaged(draws) == {
        "comprehensiveness": 0.17, "insight": 0.23, "instruction_following": 0.28, "readability": 0.32,
    }  # fmt: skip


async def test_viewer_shows_published_prompt_and_reply(tmp_path: Path) -> None:
    """Without the checkout, it shows the replies alone."""
    made_bench(tmp_path / "bench")
    async with MockOpenAI(fault=replying_to(clean=CLEANED, marks=marked())) as mock:
        await evaluate_async(config(tmp_path, mock.url))
    about = f"system={SYSTEM}&task=1&protocol=race"
    async with viewing(tmp_path / "run") as reader:
        listed = await reader.page(f"questions?{about}")
        assert "marks by criterion beside the reference, published call" in listed.text()
        shown = [
            await reader.page(link) for link in links("questions", listed.html or "") if "question?" in link
        ]
        whole = "".join(page.text() for page in shown)
        assert "MARKS en: Task 1?|A clean report." in whole and "The answer is the reply itself." in whole
    record = RunRecord.read(tmp_path / "run")
    gone = config(tmp_path, checkout=str(tmp_path / "gone")).protocols
    msgspec.structs.replace(record, config=msgspec.structs.replace(record.config, protocols=gone)).write(
        tmp_path / "run"
    )
    async with viewing(tmp_path / "run") as reader:
        listed = await reader.page(f"questions?{about}")
        assert "clean_prompt.py: cannot be read" in listed.text()


def test_question_travels_to_a_worker(tmp_path: Path) -> None:
    wording = race_wordings(str(made_bench(tmp_path / "bench")))["marks.en"]
    context = Context.of(task_prompt="A task?", article_1="One.")
    question = PublishedMarks(
        context=context, wording=wording, article_2="Two.", criteria_list="{}", attempt=3
    )
    again = pickle.loads(pickle.dumps(question))
    assert again == question and again.messages() == question.messages()
    assert again.identity() == question.identity()


async def test_gold_is_drafted_in_the_published_calls(tmp_path: Path) -> None:
    made_bench(tmp_path / "bench", criteria=False)
    weights = json.dumps(dict.fromkeys(DIMENSIONS, 0.25))
    criteria = json.dumps([{"criterion": "made", "explanation": "So.", "weight": 1}])
    async with MockOpenAI(fault=replying_to(weights=weights, criteria=criteria)) as mock:
        made = await asyncio.to_thread(draft_gold, config(tmp_path, mock.url), str(tmp_path / "gold.jsonl"))
    assert made.drafted == 2 and mock.calls == 2 * (5 + 4 + 1)  # and the passages
    gold = json.loads((tmp_path / "gold.jsonl").read_text().splitlines()[0])["gold"]["race"]
    assert gold["criterions"]["insight"] == [{"criterion": "made", "explanation": "So.", "weight": 1.0}]
