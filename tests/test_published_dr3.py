"""DR3-Eval's published calls beside its own code: the same requests, the same results, before one drawn judge.

What both sides sent and how long they took is printed (`pytest -s`).
"""

import json
import random
import tempfile
from itertools import chain
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from adjudge.engine.commands.plan import plan
from adjudge.engine.config.run import RunConfig
from adjudge.judges.published import CheckoutError, UnreadableReply
from adjudge.scoring.dr3_eval import published_facts
from adjudge.scoring.dr3_eval.published_facts import FactWordings
from adjudge.scoring.dr3_eval.published_replies import (
    Depth,
    claims_in,
    depth_in,
    recalled_in,
    satisfied_in,
    supported_in,
)
from tests.grafting import own_code
from tests.reference_bench import DrawnJudge, ours, rows, told
from tests.reference_dr3 import (
    blocks_of,
    dr3_folder,
    dr3_judge,
    drawn_facts,
    drawn_replies,
    drawn_titles,
    facts_by_code,
    facts_by_us,
    read_by_code,
    read_by_us,
    scored_by_code,
    scored_by_us,
    titles_by_code,
    titles_by_us,
    with_long_sources,
)
from tests.shared_data import shared


async def test_dr3_sends_and_scores_as_the_reference_does(tmp_path: Path, capsys) -> None:
    repo = with_long_sources(dr3_folder(tmp_path, own_code))
    async with dr3_judge(repo) as theirs, dr3_judge(repo) as judge:
        expected, seconds = await scored_by_code(repo, theirs)
        found, own_seconds = await scored_by_us(repo, tmp_path, judge)
    told(capsys, "DR3-Eval, 4 reports", (theirs, seconds), (judge, own_seconds))
    assert judge.requests == theirs.requests
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-9)
    assert sum(value is not None for value in expected.values()) > 12
    assert any(name.endswith(" average_code") for name in expected)
    asked = [request for request in judge.requests if '\\"supported\\"' in request]
    assert len(asked) > 30
    for shown in ("[... ", "[片段 ", "CSV", "JSON", "story.md", "第 3-5 页", "第 2 页", "chunk 1-2"):
        assert any(shown in request for request in asked), shown


async def test_dr3_replies_are_read_as_the_reference_reads_them(tmp_path: Path) -> None:
    replies = drawn_replies(3_000)
    expected, found = await read_by_code(dr3_folder(tmp_path, own_code), replies), read_by_us(replies)
    for text, theirs, mine in zip(
        [*replies, *blocks_of(replies)], chain(*expected), chain(*found), strict=True
    ):
        assert mine == theirs, text
    assert 2_000 < sum(value is not None for value in found[0]) < 6_000


async def test_dr3_facts_are_read_as_the_reference_reads_them(tmp_path: Path) -> None:
    drawn = drawn_facts(1_500)
    expected, found = await facts_by_code(dr3_folder(tmp_path, own_code), drawn), facts_by_us(drawn)
    replies, results, citations = drawn
    for name, texts in {"claims": replies, "verdicts": results}.items():
        for text, theirs, mine in zip(texts, expected[name], found[name], strict=True):
            assert mine == theirs, text
    for name in ("keys", "names", "places"):
        assert found[name] == expected[name] and len(found[name]) == len(citations)
    assert sum(map(bool, found["claims"])) > 2_500
    assert sum(place is not None for place in found["places"]) > 500
    assert sum(name is not None for name in found["names"]) > 1_000


def test_replies_that_end_the_code_cannot_be_read() -> None:
    for text in (
        '{"claims": [7]}',
        '{"claims": [{"claim_text": 1}]}',
        '{"claims": [{"citations": [1]}]}',
        "{}",
        "",
    ):
        with pytest.raises(UnreadableReply):
            claims_in(text)
    with pytest.raises(UnreadableReply):
        supported_in('{"results": [{"id": 1, "supported": true, "explanation": 7}]}', 1)
    for cited in (["[Doc: a.md]"] * 20_001, "x" * 20_001):
        with pytest.raises(UnreadableReply):
            claims_in(json.dumps({"claims": [{"citations": cited}]}))
    with pytest.raises(UnreadableReply):
        claims_in(json.dumps({"claims": [{}] * 5_001}))
    assert claims_in('{"claims": []}') == ()
    assert supported_in('{"results": [{"id": 1}]}', 2) == (None, None)


_CLAIMS = json.dumps(
    {"claims": [{"claim_text": f"claim {n}", "citations": ["[Doc: plan.md]"]} for n in (1, 2)]}
)


async def test_dr3_titles_are_the_same_as_in_the_reference(tmp_path: Path) -> None:
    """Made titles by the thousand; the titles of links and brackets in real reports, in these and other reports."""
    texts = [row["article"] for file in shared("golden/reports").glob("*.jsonl") for row in rows(file)]
    drawn = drawn_titles(1_500, texts)
    found = titles_by_us(drawn)
    assert found == await titles_by_code(dr3_folder(tmp_path, own_code), drawn)
    assert 1_000 < sum(found[0]) < 10_000 and sum(map(len, found[1])) > 1_000


async def test_dr3_without_a_readable_reply_has_no_value(tmp_path: Path) -> None:
    repo = dr3_folder(tmp_path)
    async with DrawnJudge(lambda prompt, draw: "Well.", 0.0) as judge:
        scores, _ = await ours(
            repo / "data/datasets_en", tmp_path, judge.url, format="dr3-eval",
            reports=[str(repo / "results_main/datasets_en/64k/tern/001/final_report.md")],
            protocols=[{"name": "dr3", "call": "published", "checkout": str(repo)}],
        )  # fmt: skip
    assert {value for (_, _, name), value in scores.items() if "cc_" not in name} == {None}
    # Detailed and three compact calls for each of three batches; two batches of requirements and depth, three each;
    # claims once.
    assert judge.requests.total() == 3 * (1 + 3) + 2 * 3 + 3 + 1


@pytest.mark.parametrize(
    ("claims", "support", "value", "high", "calls"),
    [
        ("", "", None, 1.0, 3),  # an empty reply is followed by another
        ('{"claims": []}', "", 0.0, 0.0, 1),  # the report cites nothing
        (_CLAIMS, "Well.", 0.0, 1.0, 2),  # the code takes it as unsupported
        (_CLAIMS, '{"results": [{"id": 1, "supported": true}]}', 0.5, 1.0, 2),
        (_CLAIMS, '{"results": [{"id": 1, "supported": true}, {"id": 2, "supported": false}]}', 0.5, 0.5, 2),
        (_CLAIMS, '{"results": [{"id": 1, "explanation": 7}]}', None, 1.0, 2),  # the code stumbles
        (_CLAIMS.replace("plan.md", "none.pdf"), "", 0.0, 0.0, 1),  # no such source: not asked about
        (_CLAIMS.replace("plan.md", "chart.png"), "", None, 1.0, 1),  # a picture
    ],
)
async def test_dr3_facts_that_fail_count_as_the_code_counts(
    tmp_path: Path, claims: str, support: str, value: float | None, high: float, calls: int
) -> None:
    repo = dr3_folder(tmp_path)
    (repo / "data/datasets_en/001/chart.png").write_bytes(b"\x89PNG")

    asked = []

    def draw(prompt: str, by: random.Random) -> str:
        found = claims if '"claim_text"' in prompt else support if '"supported"' in prompt else None
        asked.extend([prompt] * (found is not None))
        return "Well." if found is None else found

    async with DrawnJudge(draw, 0.0) as judge:
        scores, _ = await ours(
            repo / "data/datasets_en", tmp_path, judge.url, format="dr3-eval",
            reports=[str(repo / "results_main/datasets_en/64k/tern/001/final_report.md")],
            protocols=[{"name": "dr3", "call": "published", "checkout": str(repo)}],
        )  # fmt: skip
    rows = pq.read_table(tmp_path / "run" / "scores.parquet").to_pylist()
    (row,) = [row for row in rows if row["metric"] == "fa_lenient"]
    assert scores["tern", "001@64k", "fa_lenient"] == value
    assert [row[column] for column in ("value", "low", "high")] == [value, value or 0.0, high]
    assert len(asked) == calls


def test_dr3_plan_counts_claims_and_their_sources(tmp_path: Path) -> None:
    repo = with_long_sources(dr3_folder(tmp_path))
    config = {
        "tasks": str(repo / "data/datasets_en"),
        "reports": [str(repo / "results_main/datasets_en/64k/tern")],
        "format": "dr3-eval",
        "protocols": [{"name": "dr3", "call": "published", "checkout": str(repo)}],
        "judge": {"backend": "openai", "url": "http://127.0.0.1:9/v1", "model": "m", "max_context": 100_000},
        "store": str(tmp_path / "store"),
        "out": str(tmp_path / "run"),
    }
    found = plan(RunConfig.of(config)).questions
    assert (found["PublishedClaims"], found["PublishedSupport"]) == (2, 2 * 4)  # pages of each task's corpus


def test_dr3_names_the_library_that_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_facts, "find_spec", lambda name: None)
    with pytest.raises(CheckoutError, match=r"^jieba is not installed; run pip install 'adjudge\[dr3\]'$"):
        FactWordings.of(str(tmp_path))


def test_passages_leave_no_dictionary_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    published_facts._segmenter.cache_clear()
    text = f"{'No. ' * 200}水车的成本是五百万。{' ' * 1_000}{'Nothing. ' * 200}"
    found = published_facts.best_passages(text, "成本是多少")
    assert found[0][0] == 1 and any("水车" in passage for _, passage in found)
    assert len(found) == 5 and list(tmp_path.iterdir()) == []
    assert published_facts.best_passages(" " * 1_000, "x") == []


def test_left_out_items_are_told_apart() -> None:
    assert recalled_in('{"results": [{"id": 2, "score": 0.8}]}', 2) == (None, 1.0)
    assert satisfied_in('{"results": [{"id": 1, "satisfied": "no"}, {"id": 3}]}', 2) == (True, None)
    for text in ('{"results": [7]}', '{"results": [{"id": 1, "score": "1"}]}', '{"results": 7}'):
        with pytest.raises(UnreadableReply):
            recalled_in(text, 1)
    said = '{"text": "<depth_quality><score>8/10</score><justification></justification></depth_quality>"}'
    assert depth_in(said) == Depth(0.0, False)


@pytest.mark.parametrize("text", ["", "[" * 100_000, "9" * 5_000, "{'a': 1}", '{"text": 7}'])
def test_hostile_replies_cannot_be_read(text: str) -> None:
    with pytest.raises(UnreadableReply):
        depth_in(text)
