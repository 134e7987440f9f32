"""DR3-Eval's published calls beside its own code: the same requests, the same results, before one drawn judge.

What both sides sent and how long they took is printed (`pytest -s`).
"""

import json
import random
import re
from pathlib import Path

import pytest

from adjudge.judges.published import UnreadableReply
from adjudge.scoring.dr3_eval.code_titles import Title, covered, same_title
from adjudge.scoring.dr3_eval.published_replies import Depth, depth_in, json_in, recalled_in, satisfied_in
from tests.reference_bench import DrawnJudge, ours, rows, told
from tests.reference_papers import dr3_folder, run_beside
from tests.shared_data import shared

_SCRIPT = """
import json, sys
from pathlib import Path
from evaluators.utils.run_all import EvaluationRunner
base, found = Path("data/datasets_en"), {}
for report in sorted(Path("results_main/datasets_en/64k").glob("*/*/final_report.md")):
    task, model = report.parent.name, report.parent.parent.name
    gold = Path("evaluation/insights/datasets_en") / task
    result = EvaluationRunner(metrics=["information_recall", "overall_quality", "format_compliance"]).run(
        report, gold_path=gold / "gold_insights_from_long_context.json",
        gold_source_path=gold / "gold_insights_from_source.json",
        checklist_path=Path("evaluation/checklists/datasets_en") / task / "checklist.json",
        query_file=base / "query.jsonl", source_folder=base / task, case_id=task,
    )
    found[f"{model} {task}"] = {name: one.to_dict() for name, one in result.results.items()}
print()
print(json.dumps(found))
"""
_READ = """
import json, sys
from evaluators.utils.llm_client import extract_json_from_text
from evaluators.depth_quality import OverallQualityEvaluator
depth = OverallQualityEvaluator.__new__(OverallQualityEvaluator)
def scored(text):
    try:
        found, valid = depth._parse_evaluation_response(text)
        return found["score"] if valid else None
    except Exception:
        return None
def value(text):
    try:
        return extract_json_from_text(text)
    except Exception:
        return None
print()
print(json.dumps([[value(text), scored(text)] for text in json.load(open(sys.argv[1]))]))
"""

_TITLES = """
import json, sys
from evaluators.utils.document_loader import fuzzy_title_match
from evaluators.citation_coverage import CitationCoverageEvaluator
cites = CitationCoverageEvaluator()
pairs, reports = json.load(open(sys.argv[1]))
same = [fuzzy_title_match(one, other) for one, other in pairs]
cited = [cites._check_citations_with_extraction(text, titles)["cited"] for text, titles in reports]
print()
print(json.dumps([same, cited]))
"""


def reply(prompt: str, draw: random.Random) -> str:
    """A reply to any prompt, of any quality that the code survives."""
    if "depth_quality" in prompt:
        return depth_reply(draw)
    count = max(number for number in range(1, 11) if f"\n{number}. The " in prompt)
    recall = "nsights" in prompt.split("\n", 1)[0] or "Insights" in prompt
    scores: list[object] = (
        [1.0, 1, 0.5, 0.0, 0.8, 0.3, 0.1, True] if recall else [True, False, "false", 0, None]
    )
    name = "score" if recall else "satisfied"
    said: list[dict] = [{"id": n, name: draw.choice(scores)} for n in range(1, count + 1)]
    if draw.random() < 0.3:
        del said[draw.randrange(len(said))]
    if draw.random() < 0.2:
        said.append({"id": 1, name: draw.choice(scores)})
    return damaged(json.dumps({"results": said}, indent=draw.choice([None, 2])), draw)


def damaged(text: str, draw: random.Random) -> str:
    match draw.randrange(9):
        case 0:
            return f"Here:\n```json\n{text}\n```\nDone."
        case 1:
            return text[: draw.randint(len(text) // 2, len(text))]
        case 2:
            return f"The marks are {text} so."
        case 3:
            return draw.choice(["", "Well.", "{}", '{"found": []}', "[]", "{'results': 1"])
        case 4:
            return (
                text.replace('"', "\u201c").replace("}", "\u201d}", 1)
                if draw.random() < 0.2
                else f"```{text}"
            )
        case 5:
            return text[: len(text) // 2] + "..."
    return text


def depth_reply(draw: random.Random) -> str:
    score = draw.choice(["7", " 8.6 ", "0", "11", "8/10", "high", "nan", "6"])
    block = draw.choice(
        [
            f"<depth_quality>\n<score>{score}</score>\n<justification>So.</justification>\n</depth_quality>",
            f"<DEPTH_QUALITY> <b/> <score>{score}</score></depth_quality>",
            f"depth_quality: {score}",
            "nothing",
        ]
    )
    return damaged(draw.choice([json.dumps({"text": block}), block, json.dumps({"depth": 7})]), draw)


async def test_dr3_sends_and_scores_as_the_reference_does(tmp_path: Path, capsys) -> None:
    repo = dr3_folder(tmp_path)
    async with DrawnJudge(reply) as theirs, DrawnJudge(reply) as judge:
        found, seconds = await run_beside(repo, theirs, _SCRIPT)
        scores, own_seconds = await ours(
            repo / "data/datasets_en", tmp_path, judge.url, format="dr3-eval",
            reports=[str(repo / "results_main/datasets_en")],
            protocols=[{"name": "dr3", "call": "published", "checkout": str(repo)}],
        )  # fmt: skip
    told(capsys, f"DR3-Eval, {len(found)} reports", (theirs, seconds), (judge, own_seconds))
    assert judge.requests == theirs.requests
    compared = 0
    for report, results in found.items():
        model, task = report.split()
        expected = {"if": results.get("format_compliance"), "dq": results.get("overall_quality")}
        recall = results.get("information_recall")
        sides = recall["details"]["components"] if recall else {}
        expected |= {"ir": recall, "ir_sc": sides.get("long_context"), "ir_uf": sides.get("source_documents")}
        for name, one in expected.items():
            value = scores[model, f"{task}@64k", name]
            if name.startswith("ir_") and recall is None:
                continue  # the code fails both sides where one fails
            lacking = one is None or one["score"] < 0
            assert value == (None if lacking else pytest.approx(one["score"] / 100, abs=1e-9)), (report, name)
            compared += not lacking
    assert compared > 8


async def test_dr3_replies_are_read_as_the_reference_reads_them(tmp_path: Path) -> None:
    repo, draw = dr3_folder(tmp_path), random.Random(3)
    prompts = ["Insights\n1. The a\n2. The b\n3. The c", "depth_quality", "Check\n1. The a\n2. The b"]
    replies = [reply(draw.choice(prompts), draw) for _ in range(3_000)]
    replies += [damaged(text, draw) for text in replies]
    (tmp_path / "replies.json").write_text(json.dumps(replies))
    expected, _ = await run_beside(repo, None, _READ, str(tmp_path / "replies.json"))
    known = 0
    for text, (value, _) in zip(replies, expected, strict=True):
        try:
            found = json_in(text)
        except UnreadableReply:
            found = None
        assert found == value, text
        known += found is not None
    assert 2_000 < known < 6_000
    blocks = [text for text in replies if not text.lstrip().startswith(("{", "[", "```")) and "{" not in text]
    wrapped = [json.dumps({"text": text}) for text in blocks]
    (tmp_path / "replies.json").write_text(json.dumps(blocks))
    expected, _ = await run_beside(repo, None, _READ, str(tmp_path / "replies.json"))
    for text, (_, score) in zip(wrapped, expected, strict=True):
        try:
            assert depth_in(text).value == score, text
        except UnreadableReply:
            assert score is None, text


_WORDS = (
    "A Study of Costs the mill BBC figure-2 costs... 报告 市场分析 的 水车 report.pdf (LLM) GPT-4 “quoted” ＡＢ　Ｃ "
    "l'eau chunk 3 2019 x y z notes.md image2.jpg、 WTO-2 3D-A TODO 图1 meta-analysis - \u3000 K"
).split(" ")
_CITED = (
    "[%s]", '[long_context: "%s, chunk 2", chunk 1]', "[source: “%s”]", "[Image: %s]", "[%s.md, 第1-2页]", "%s",
    "[long_context: “%s", "[long_context: '%s']", '[source: ""%s"]', "[12 3]%s", "[    %s]", "(%s)",
)  # fmt: skip


def _title(draw: random.Random) -> str:
    made = draw.choice([" ", "-", ",", ""]).join(draw.choice(_WORDS) for _ in range(draw.randint(1, 6)))
    for _ in range(draw.choice([0, 0, 1, 3])):
        place = draw.randrange(len(made) + 1)
        made = made[:place] + draw.choice(["x", "é", "中", " ", ""]) + made[place + 1 :]
    return made or "x"


async def test_dr3_titles_are_the_same_as_in_the_reference(tmp_path: Path) -> None:
    """Made titles by the ten thousand; the titles of links and brackets in real reports, in these and other reports."""
    repo, draw = dr3_folder(tmp_path), random.Random(5)
    pairs = [(_title(draw), _title(draw)) for _ in range(20_000)]
    pairs += [(one, one[: draw.randint(0, len(one))] + other[:4]) for one, other in pairs[:10_000]]
    texts = [row["article"] for file in shared("golden/reports").glob("*.jsonl") for row in rows(file)]
    real = [name for text in texts for name in re.findall(r"\[([^\[\]\n]{4,120})\]", text)[:9]]
    real += [line.lstrip("# ") for text in texts for line in text.splitlines()[:9] if line.startswith("#")]
    pairs += [(draw.choice(real), draw.choice(real)) for _ in range(20_000)]
    reports = [(text, draw.sample(real, 20)) for text in texts]
    for _ in range(4_000):
        named = [draw.choice(_CITED) % _title(draw) for _ in range(draw.randint(0, 6))]
        reports.append((draw.choice([" ", "\n"]).join(named), [_title(draw) for _ in range(4)]))
    (tmp_path / "titles.json").write_text(json.dumps([pairs, reports]))
    (same, cited), _ = await run_beside(repo, None, _TITLES, str(tmp_path / "titles.json"))
    assert [same_title(Title(one), Title(other)) for one, other in pairs] == same
    mine = [
        [title for title, found in zip(titles, covered(text, titles), strict=True) if found]
        for text, titles in reports
    ]
    assert mine == cited
    assert len(real) > 150 and 5_000 < sum(same) < 40_000 and sum(map(len, cited)) > 2_000


async def test_dr3_without_a_readable_reply_has_no_value(tmp_path: Path) -> None:
    repo = dr3_folder(tmp_path)
    async with DrawnJudge(lambda prompt, draw: "Well.", 0.0) as judge:
        scores, _ = await ours(
            repo / "data/datasets_en", tmp_path, judge.url, format="dr3-eval",
            reports=[str(repo / "results_main/datasets_en/64k/tern/001/final_report.md")],
            protocols=[{"name": "dr3", "call": "published", "checkout": str(repo)}],
        )  # fmt: skip
    assert set(scores.values()) == {None}
    # Detailed and three compact calls for each of three batches; two batches of requirements and depth, three each.
    assert judge.requests.total() == 3 * (1 + 3) + 2 * 3 + 3


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
