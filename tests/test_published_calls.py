"""Published calls beside the reference code: the same requests, the same results, before one judge.

What both sides sent and how long they took is printed (`pytest -s`).
"""

import json
import math
import random
import time
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from adjudge.judges.checkout import Checkout
from adjudge.judges.openai import OpenAIConfig, OpenAIJudge
from adjudge.judges.published import UnreadableReply
from adjudge.prompts import PromptBook
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.deepresearch_bench.published_criteria import CriteriaWordings, published_yardstick
from adjudge.scoring.deepresearch_bench.published_marks import marks_in, shares
from adjudge.scoring.deepresearch_bench.yardstick import Criterion, RaceGold, Yardstick
from tests.reference_bench import DrawnJudge, bench_folder, rows, run_python, run_reference
from tests.shared_data import shared
from tests.tools import DirectTools

DIMENSIONS = ("comprehensiveness", "insight", "instruction_following", "readability")
SYSTEMS = ("claude-opus-tickr-0929", "gpt5-tickr-0917")
MARKS = ("article_1_score", "article_2_score")


def told(capsys, what: str, theirs: tuple[DrawnJudge, float], ours: tuple[DrawnJudge, float]) -> None:
    """Print how many calls and seconds both sides took."""
    took = [f"{judge.requests.total()} calls in {seconds:.1f} s" for judge, seconds in (theirs, ours)]
    with capsys.disabled():
        print(f"\n{what}: reference {took[0]}, ours {took[1]}")


def between(text: str, start: str, end: str) -> str:
    return text.split(start, 1)[1].split(end, 1)[0]


def marks(prompt: str, draw: random.Random) -> str:
    """A reply to a scoring prompt, of any quality."""
    criteria = json.loads(between(prompt, "<criteria_list>\n", "\n</criteria_list>"))
    said = {
        name: [
            {
                "criterion": one["criterion"],
                "analysis": "So, {so}.",
                **{m: draw.randint(0, 40) / 4 for m in MARKS},
            }
            for one in criteria[name]
        ]
        for name in draw.sample(DIMENSIONS, 4)
    }
    kind = draw.choice(
        "plain fenced prose tail open broken garbage empty lacking list flat texts numbers less more".split()
    )
    some = draw.choice(DIMENSIONS)
    items = said[some]
    match kind:
        case "garbage":
            return draw.choice(["Both are fine.", "{comprehensiveness}", "[1, 2", "null", "7", '"so"'])
        case "empty":
            return ""
        case "lacking":
            del said[some]
        case "list":
            said[some] = {"marks": items}
        case "flat":
            said[some] = []
        case "texts":
            for one in items:
                text = one["criterion"]
                one["criterion"] = draw.choice(
                    [text.upper(), f" {text} ", text[: len(text) // 2], f"{text}!", "none of them", "", 7]
                )
        case "numbers":
            for one in items:
                one["article_1_score"] = draw.choice(["7.5", " 8 ", None, "high", True, [1], 11, -1])
                one["article_2_score"] = draw.choice(["6", None, "low", 5])
        case "less":
            del items[:: draw.choice([1, 2])]
            items[1:] = [draw.choice([one, None, "so", {"target_score": 4}]) for one in items[1:]]
        case "more":
            items += [
                dict(items[0], article_1_score=draw.choice([0, 10])),
                {"criterion": "extra", MARKS[0]: 3},
            ]
            said["style"] = items
    text = json.dumps(said, ensure_ascii=draw.random() < 0.5, indent=draw.choice([None, 2]))
    match kind:
        case "fenced":
            return f"Here:\n```json\n{text}\n```\nDone."
        case "prose":
            return f"The marks are {text}, I think."
        case "tail":
            return f"Note {{this}}: {text}"
        case "open":
            return f"```json\n{text}"
        case "broken":
            return text[: draw.randint(len(text) // 2, len(text))].replace('",', '"', 1)
    return text


def cleaned(article: str, draw: random.Random) -> str:
    hopeless = len(article) % 5 == 0
    if hopeless or draw.random() < 0.3:
        return draw.choice(["", "I cannot.", " " * 200, "x" * 99])
    return draw.choice([f"{article[:-5]}.", f"\n{article[:600]} ", article.replace("[1]", "")])


def race_judge(bench: Path) -> DrawnJudge:
    """Tells cleaning from scoring by the tags of the scoring prompt."""
    edges = Checkout(bench).formatted("prompt/clean_prompt.py", "clean_article_prompt_en").pieces
    before, after = edges[0][0], edges[1][0]

    def draw(prompt: str, by: random.Random) -> str:
        if "<criteria_list>" in prompt:
            return marks(prompt, by)
        assert prompt.startswith(before) and prompt.endswith(after)
        return cleaned(prompt[len(before) : len(prompt) - len(after)], by)

    return DrawnJudge(draw)


async def ours(bench: Path, out: Path, url: str, **options: object) -> tuple[dict, float]:
    """Our scores by (system, task, metric), and the seconds they took."""
    config = RunConfig.of(
        {
            "tasks": str(bench),
            "format": "deepresearch-bench",
            "judge": {"backend": "openai", "url": url, "model": "judge"},
            "store": str(out / "store"),
            "out": str(out / "run"),
            **options,
        }
    )
    started = time.perf_counter()
    await evaluate_async(config)
    seconds = time.perf_counter() - started
    table = pq.read_table(out / "run" / "scores.parquet").to_pylist()
    return {(row["system"], row["task_id"], row["metric"]): row["value"] for row in table}, seconds


def result_text(scores: dict, system: str) -> str:
    """race_result.txt from our scores."""
    tasks = sorted({int(task) for name, task, _ in scores if name == system})
    lines = []
    for metric in (*DIMENSIONS, "overall"):
        values = [scores[system, str(task), metric] for task in tasks]
        values = [value for value in values if value is not None]
        name = "Overall Score" if metric == "overall" else metric.replace("_", " ").title()
        lines.append(f"{name}: {sum(values) / len(values):.4f}\n")
    return "".join(lines)


async def test_race_sends_and_scores_as_the_reference_does(tmp_path: Path, capsys) -> None:
    bench = bench_folder(tmp_path, "deep_research_bench_tickr")
    for stale in (bench / "data/test_data/cleaned_data").glob("*tickr*"):
        stale.unlink()
    async with race_judge(bench) as theirs, race_judge(bench) as judge:
        seconds = 0.0
        for system in SYSTEMS:
            seconds += await run_reference(
                bench, theirs, "deepresearch_bench_race.py", system, "--max_workers", "10",
                "--output_dir", f"results/{system}",
            )  # fmt: skip
        protocols = [
            {
                "name": "race",
                "call": "published",
                "checkout": str(shared("reference/deep_research_bench_tickr")),
            }
        ]
        scores, own_seconds = await ours(bench, tmp_path, judge.url, protocols=protocols)
    assert judge.requests == theirs.requests
    for system in SYSTEMS:
        raw = {str(row["id"]): row for row in rows(bench / "results" / system / "raw_results.jsonl")}
        assert 4 <= len(raw) < 10, "some tasks are scored, and some fail"
        for task in map(str, range(1, 11)):
            for metric in (*DIMENSIONS, "overall"):
                value = scores[system, task, metric]
                name = "overall_score" if metric == "overall" else metric
                assert value == (pytest.approx(raw[task][name], abs=1e-9) if task in raw else None)
        published = (bench / "results" / system / "race_result.txt").read_text()
        assert result_text(scores, system) == published
    told(capsys, f"RACE, {len(SYSTEMS)} systems x 10 tasks", (theirs, seconds), (judge, own_seconds))


_SCORED = """
import json, logging, sys
logging.disable(logging.CRITICAL)
from utils.json_extractor import extract_json_from_markdown
from utils.score_calculator import calculate_weighted_scores
dims = json.loads(sys.argv[3])
criteria = json.load(open(sys.argv[2]))
for line in open(sys.argv[1]):
    try:
        said = json.loads(extract_json_from_markdown(json.loads(line)))
        if not all(dim in said for dim in dims):
            raise ValueError("missing")
        found = calculate_weighted_scores(said, criteria)
        sides = [[found[side]["dims"].get(dim + "_weighted_avg") for dim in dims] for side in ("target", "reference")]
        print(json.dumps([found["target"]["total"], found["reference"]["total"], *sides]))
    except Exception as error:
        print("null")
"""


def odd(reply: str, draw: random.Random) -> str:
    """`reply` damaged somewhere."""
    place, kind = draw.randrange(len(reply) + 1), draw.randrange(6)
    extra = draw.choice(
        ['"', "{", "}", "```", "```json", "[", "NaN", "1e999", "9" * 5_000, "\x00", "'insight'", "é"]
    )
    if kind == 0:
        return reply[:place]
    if kind == 1:
        return reply[place:]
    if kind == 2:
        return reply[:place] + extra + reply[place:]
    if kind == 3:
        return reply.replace(draw.choice(DIMENSIONS), draw.choice(["insight", "style", "1"]), 1)
    if kind == 4:
        return reply.replace(": 5", f": {draw.choice(['NaN', '-3', '1e400', 'Infinity', 'null', '[]'])}")
    return reply


async def test_marks_are_read_as_the_reference_reads_them(tmp_path: Path) -> None:
    """Thousands of replies, most of them damaged: the same means, or no result on either side."""
    bench = bench_folder(tmp_path, "deep_research_bench_tickr")
    gold = rows(bench / "data/criteria_data/criteria.jsonl")[0]
    listed = {
        name: [{"criterion": one["criterion"]} for one in each] for name, each in gold["criterions"].items()
    }
    prompt = f"<criteria_list>\n{json.dumps(listed)}\n</criteria_list>"
    draw = random.Random(1)
    replies = [odd(marks(prompt, draw), draw) for _ in range(3_000)]
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(one) + "\n" for one in replies))
    (tmp_path / "criteria.json").write_text(json.dumps(gold))
    said = await run_python(
        bench,
        "-c",
        _SCORED,
        str(tmp_path / "replies.jsonl"),
        str(tmp_path / "criteria.json"),
        json.dumps(DIMENSIONS),
    )
    criteria = {name: msgspec.convert(each, list[Criterion]) for name, each in gold["criterions"].items()}
    scored = 0
    for reply, line in zip(replies, said.splitlines(), strict=True):
        expected = json.loads(line)
        try:
            found = shares(marks_in(reply), gold["dimension_weight"], criteria)
        except UnreadableReply:
            assert expected is None or not math.isfinite(expected[0] + expected[1]), reply
            continue
        assert expected is not None, reply
        scored += 1
        for place, name in enumerate(DIMENSIONS):
            one = found.marks.get(name)
            theirs = [expected[2][place], expected[3][place]]
            assert [one and one.target, one and one.reference] == pytest.approx(theirs, abs=1e-9, nan_ok=True)
        target, reference = expected[:2]
        share = target / (target + reference) if target + reference > 0 else 0.0
        assert found.overall == pytest.approx(share, abs=1e-9)
    assert 800 < scored < 2_800


def drafted(weights: bool, draw: random.Random) -> str:
    """A reply to a prompt for weights or criteria, of any quality."""
    if draw.random() < 0.3:
        return draw.choice(
            ["", "Well.", '{"insight": 0.5}', "[]", '[{"criterion": "a"}]', "{}", "7", '{"insight": "x"}']
        )
    if weights:
        shares = [draw.randint(1, 50) for _ in DIMENSIONS]
        found: object = {name: share / sum(shares) for name, share in zip(DIMENSIONS, shares, strict=True)}
    else:
        found = [{"criterion": f"C{n} ünd", "explanation": "So.", "weight": 0.25} for n in range(4)]
    text = json.dumps(found)
    return draw.choice(
        [text, f"```json\n{text}\n```", f"So: <JSON_output>\n{text}\n</json_output> done", f"```{text}```"]
    )


async def test_weights_and_criteria_are_made_as_the_reference_does(tmp_path: Path, capsys) -> None:
    bench = bench_folder(tmp_path)
    query = bench / "data/prompt_data/query.jsonl"
    tasks = [row for row in rows(query) if row["id"] in (1, 2, 51, 52)]
    assert {row["language"] for row in tasks} == {"en", "zh"}
    query.write_text("".join(json.dumps(row) + "\n" for row in tasks))
    checkout = Checkout(bench)
    wordings = {language: CriteriaWordings.of(checkout, language) for language in ("en", "zh")}
    heads = tuple(one.weights.turns[0][1].pieces[0][0] for one in wordings.values())

    def draw(prompt: str, by: random.Random) -> str:
        return drafted(prompt.startswith(heads), by)

    script = "from bench.utils.generate_criteria import *; generate_criteria_pipeline(INPUT_FILE, OUTPUT_FILE, 50, 25)"
    async with DrawnJudge(draw) as theirs, DrawnJudge(draw) as judge:
        seconds = await run_reference(bench, theirs, "-c", script)
        made = {row["id"]: row for row in rows(bench / "data/criteria_data/criteria.jsonl")}
        config = OpenAIConfig(url=judge.url, model="judge")
        started = time.perf_counter()
        asked = OpenAIJudge(config, PromptBook(), b"")
        try:
            for row in tasks:
                task = Task(id=str(row["id"]), prompt=row["prompt"], language=row["language"])
                case = Case(task=task, report=Report(task_id=task.id, system="A", text="A."))
                found = await published_yardstick(
                    case, RaceGold(), wordings[task.language], DirectTools(asked)
                )
                assert isinstance(found, Yardstick)
                assert found.weights == made[row["id"]]["dimension_weight"]
                criteria = {
                    name: list(map(msgspec.to_builtins, each)) for name, each in found.criteria.items()
                }
                assert criteria == made[row["id"]]["criterions"]
        finally:
            await asked.close()
        own_seconds = time.perf_counter() - started
    assert judge.requests == theirs.requests
    told(capsys, f"weights and criteria of {len(tasks)} tasks", (theirs, seconds), (judge, own_seconds))
