"""FACT in a benchmark's own calls: recorded and live pages, and what is missing without blaming the report."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.commands.evaluate import RunResult, evaluate_async
from adjudge.engine.commands.plan import plan
from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.judges.published import UnreadableReply
from adjudge.scoring.deepresearch_bench.published_fact import (
    Cited,
    cited_in,
    kept_in,
    verdicts_in,
    without_fragments,
    without_links,
)
from tests.made_bench import SYSTEM, made_bench, replying_to
from tests.mock_openai import MockOpenAI

A, B = "https://a.example/x?y#z", "https://b.example"
CITED = json.dumps(
    [{"fact": fact, "ref_idx": 1, "url": url} for fact, url in (("One.", A), ("Two.", A), ("Six.", B))]
)
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


def verdicts(*said: str) -> str:
    return json.dumps([{"idx": place, "result": one} for place, one in enumerate(said, 1)])


def supported(prompt: str, before: int) -> str:
    """All statements of a page are supported."""
    return verdicts(*["supported"] * len(prompt.rsplit("|", 1)[1].split("\n")))


def scraped(folder: Path, **pages: str | None) -> str:
    """Recorded pages of both tasks."""
    content = {"a": A, "b": B}
    found = {content[name]: {"facts": [], "url_content": text} for name, text in pages.items()}
    file = folder / "scraped" / f"{SYSTEM}.jsonl"
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(json.dumps({"id": task, "citations_deduped": found}) + "\n" for task in (1, 2)))
    return str(file.parent)


def config(tmp_path: Path, url: str = "http://127.0.0.1:9/v1", out: str = "run", **options: Any) -> RunConfig:
    return RunConfig.of(
        {
            "tasks": str(tmp_path / "bench"),
            "format": "deepresearch-bench",
            "protocols": [{"name": "fact", "call": "published", **options}],
            "judge": {"backend": "openai", "url": url, "model": "judge", "retries": 0, "patience_s": 1.0},
            "fetch": {"mode": "off"},
            "store": str(tmp_path / "store"),
            "out": str(tmp_path / out),
        }
    )


def scores(result: RunResult, task: str = "1") -> dict[str, float | None]:
    table = pq.read_table(Path(result.out) / "scores.parquet").to_pylist()
    return {row["metric"]: row["value"] for row in table if row["task_id"] == task}


async def evaluated(tmp_path: Path, record: str, **replies: Any) -> dict[str, float | None]:
    """The scores of one report, asked with `replies`; a second run asks nothing and scores the same."""
    made_bench(tmp_path / "bench")
    async with MockOpenAI(fault=replying_to(**replies)) as mock:
        found = scores(await evaluate_async(config(tmp_path, mock.url, scraped=record)))
        asked = mock.calls
        assert scores(await evaluate_async(config(tmp_path, mock.url, out="again", scraped=record))) == found
        assert mock.calls == asked
    return found


async def test_recorded_pages_are_judged_as_they_stand(tmp_path: Path) -> None:
    seen = []

    def validate(prompt: str, before: int) -> str:
        seen.append(prompt)
        return supported(prompt, before)

    record = scraped(tmp_path, a="T\n\nD\n\n{statements} {}", b="Page B")
    found = await evaluated(tmp_path, record, extract=CITED, deduplicate="[2]", validate=validate)
    assert found["supported"] == found["judged"] == found["pairs"] == 2 and found["cited"] == 1
    assert sorted(seen) == sorted(
        f"VALIDATE {language}: {text}"
        for language in ("en", "zh")
        for text in ("T\n\nD\n\n{statements} {}|1. Two.", "Page B|1. Six.")
    )


async def test_failed_scrape_counts_and_is_not_judged(tmp_path: Path) -> None:
    record = scraped(tmp_path, a="scrape failed: 404", b="Page B")
    found = await evaluated(
        tmp_path, record, extract=CITED, deduplicate="[1, 2]", validate=verdicts("unsupported")
    )
    assert found["judged"] == 1 and found["supported"] == 0
    assert found["unreachable"] == 2 and found["c_acc"] == found["e_cit"] == 0, (
        "it stays in the paper's count"
    )


@pytest.mark.parametrize("extract", ["", "none", '[{"fact": "One."}]', '{"a": 1}'])
async def test_unreadable_citations_leave_the_report_unscored(tmp_path: Path, extract: str) -> None:
    made_bench(tmp_path / "bench")
    async with MockOpenAI(fault=replying_to(extract=extract)) as mock:
        result = await evaluate_async(config(tmp_path, mock.url, scraped=scraped(tmp_path)))
        assert mock.calls == 2
    assert set(scores(result).values()) == {None} and result.unscored == 2


async def test_report_that_cites_nothing_is_counted_by_both_rules(tmp_path: Path) -> None:
    found = await evaluated(tmp_path, scraped(tmp_path), extract="[]")
    assert found["c_acc"] == 0 and found["cited"] == 0 and found["pairs"] == 0


async def test_statements_are_kept_where_repeats_cannot_be_read(tmp_path: Path) -> None:
    record = scraped(tmp_path, a="Page A", b="Page B")
    found = await evaluated(tmp_path, record, extract=CITED, deduplicate="no idea", validate=supported)
    assert found["pairs"] == found["supported"] == 3


async def test_unreadable_verdicts_leave_a_page_out(tmp_path: Path) -> None:
    record = scraped(tmp_path, a="Page A", b="Page B")
    replies = {"extract": CITED, "deduplicate": "[1, 2]"}
    made_bench(tmp_path / "bench")
    async with MockOpenAI(fault=replying_to(**replies, validate=verdicts("unknown"))) as mock:
        found = scores(await evaluate_async(config(tmp_path, mock.url, scraped=record)))
        assert mock.calls == 2 * (1 + 1 + 1 + 3)
        assert found["judged"] == 0 and found["e_cit"] is None
        await evaluate_async(config(tmp_path, mock.url, out="again", scraped=record))
        assert mock.calls == 2 * (1 + 1 + 1 + 3) + 2, "only the last attempts are made again"


def test_plan_counts_what_a_run_asks(tmp_path: Path) -> None:
    made_bench(tmp_path / "bench")
    articles = tmp_path / "bench/data/test_data/raw_data/agent.jsonl"
    articles.write_text(json.dumps({"id": 1, "article": f"One ({A}). Two, see {B}. One again: {A}."}) + "\n")
    planned = plan(config(tmp_path, scraped=scraped(tmp_path, a="Page A", b="Page B")))
    assert planned.questions == {"PublishedExtract": 1, "PublishedSupport": 1}, "A has another fragment here"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (None, "does not exist"),
        ("{}\n", ":1: "),
        ('{"id": 1}\n{"id": 2, "citations_deduped": [1]}\n', ":2: "),
        ("[" * 10_000, ":1: "),
    ],
)
def test_recorded_pages_that_cannot_be_read_are_one_line(tmp_path: Path, rows: str | None, said: str) -> None:
    made_bench(tmp_path / "bench")
    file = tmp_path / "scraped.jsonl"
    if rows is not None:
        file.write_text(rows)
    with pytest.raises(ConfigError) as raised:
        plan(config(tmp_path, scraped=str(file)))
    assert said in str(raised.value) and str(file) in str(raised.value) and "\n" not in str(raised.value)


def test_citations_are_read_through_layers_of_escapes() -> None:
    once = r'[{"fact": "a \> b [c](http://d)", "url": null}]'
    assert cited_in(f"```json\n{once}\n```") == [Cited("a > b [c]", "null")]
    assert cited_in(once.replace("\\>", "\\\\\\>")) == [Cited("a \\> b [c]", "null")]
    assert cited_in("{}") == cited_in('""') == []
    for text in (
        "",
        "null",
        "3",
        '[{"fact": 1, "url": "a"}]',
        '[{"fact": "a", "url": []}]',
        "[" * 100_000,
        "9" * 5_000,
    ):
        with pytest.raises(UnreadableReply):
            cited_in(text)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("[3, 1]", (2, 0)),
        ("```json\n[2]```", (1,)),
        ("[1, 1]", (0, 0)),
        ("[]", (0, 1, 2)),
        ("[0, 1]", (0, 1, 2)),
        ("[1, 2, 3, 1]", (0, 1, 2)),
        ("[4]", (0, 1, 2)),
        ("[-1]", (0, 1, 2)),
        ('["1"]', (0, 1, 2)),
        ('{"1": 1}', (0, 1, 2)),
        ("7", (0, 1, 2)),
        ("none", None),
        ("[" * 100_000, None),
    ],
)
def test_kept_statements_are_read_by_the_published_rule(text: str, kept: tuple[int, ...] | None) -> None:
    assert kept_in(text, 3) == kept


def test_verdicts_are_put_in_the_order_of_statements() -> None:
    shuffled = '[{"idx": 2, "result": "unknown"}, {"idx": 1, "result": "supported"}]'
    assert verdicts_in(shuffled, 2) == ("supported", "unknown")
    assert verdicts_in(shuffled.replace("2", "1"), 2) == ("unknown", "supported")
    assert verdicts_in('[{"idx": 1, "result": ["partly"]}, {"idx": 2}]', 2) == ("unsupported", None)
    for text in (
        "",
        "[]",
        "{}",
        "[1]",
        '[{"idx": "1"}, {"idx": 2}]',
        '[{"result": "supported"}]',
        '{"idx": 1}',
    ):
        with pytest.raises(UnreadableReply):
            verdicts_in(text, 2)


@given(st.text(alphabet="[]()ab#:~text=\n", max_size=40))
def test_links_are_found_as_the_pattern_finds_them(text: str) -> None:
    assert without_links(text) == LINK.sub(r"[\1]", text)
    cut = LINK.sub(lambda found: f"[{found[1]}]({found[2].partition('#:~:text=')[0]})", text)
    assert without_fragments(text) == cut
