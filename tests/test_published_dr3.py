"""DR3-Eval's published calls beside its own code: the same requests, the same results, before one drawn judge.

What both sides sent and how long they took is printed (`pytest -s`).
"""

import json
import random
import re
import tempfile
from pathlib import Path

import pytest

from adjudge.engine.commands.plan import plan
from adjudge.engine.config.run import RunConfig
from adjudge.judges.published import CheckoutError, UnreadableReply
from adjudge.scoring.dr3_eval import published_facts
from adjudge.scoring.dr3_eval.published_facts import FactWordings, Place, found_sources, place_of, source_key
from adjudge.scoring.dr3_eval.published_replies import (
    Depth,
    claims_in,
    depth_in,
    json_in,
    recalled_in,
    satisfied_in,
    supported_in,
)
from adjudge.scoring.dr3_eval.sandbox import Title, covered, same_title
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
    metrics = ["information_recall", "factual_accuracy", "overall_quality", "format_compliance"]
    result = EvaluationRunner(metrics=[*metrics, "citation_coverage"]).run(
        report, gold_path=gold / "gold_insights_from_long_context.json",
        gold_source_path=gold / "gold_insights_from_source.json",
        checklist_path=Path("evaluation/checklists/datasets_en") / task / "checklist.json",
        query_file=base / "query.jsonl", source_folder=base / task, case_id=task,
        long_context_path=base / task / "long_context_sampled_64k.json",
    )
    found[f"{model} {task}"] = {name: one.to_dict() for name, one in result.results.items()}
    found[f"{model} {task}"]["average"] = {"score": result.total_score, "all": len(result.results) == 5}
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

_FACTS = """
import json, sys
from pathlib import Path
from evaluators.factual_accuracy import FactualAccuracyAgentEvaluator, parse_citation_details
from openai import _Node
import evaluators.factual_accuracy as code
facts = FactualAccuracyAgentEvaluator()
def answering(text):
    class Completions:
        def create(self, **body):
            choice = _Node({"message": {"content": text}, "finish_reason": "stop"})
            reply = _Node({})
            reply.choices = [choice]
            return reply
    client = _Node({})
    client.chat = _Node({})
    client.chat.completions = Completions()
    return client
def claims(text):
    facts.api_client = answering(text)
    try:
        found = facts._extract_claims_with_llm("R")
        return [[one.get("claim_text", ""), list(one.get("citations", []) or [])] for one in found]
    except Exception:
        return []
def verdicts(text):
    source = {"found": True, "type": "text", "content": "x", "name": "y"}
    asked = [{"id": n, "claim_text": "c", "citation": ""} for n in (1, 2, 3)]
    return facts._verify_batch_with_api_thread(asked, source, answering(text))
def place(citation):
    found = parse_citation_details(citation)
    for unit in ("page", "chunk"):
        if found[unit]:
            return [unit, *found[unit + "_range"]]
folder, listed = Path(sys.argv[2]), Path.iterdir
Path.iterdir = lambda self: sorted(listed(self))
facts.doc_loader.load_long_context(Path(sys.argv[3]))
replies, results, citations = json.load(open(sys.argv[1]))
keys = [facts._get_source_key([one], "") for one in citations]
names = [facts._get_source_info(one, folder) for one in keys]
names = [one["name"] if one["found"] else None for one in names]
print()
print(json.dumps(
    [list(map(claims, replies)), list(map(verdicts, results)), keys, names, list(map(place, citations))]
))
"""
_CITATIONS = (
    "[Doc: plan.md]", "[Doc: plan.md, Page 2]", "[Doc: story.md, Page 3-5]", "[文档: notes.txt]", "[doc: list.json]",
    '[long_context: "A Study of Costs", chunk 1]', '[long_context: "Old figures", chunk 1-2]', "[RAG-3]", "[RAG-9]",
    '[long_context: "The long history of the mill", chunk 0]', "[Doc: figures.csv]", "[Doc: none.pdf]", "[RAG-0]",
    "[Image: chart.jpg]", "[source_1: notes.txt]", "[Doc: The long history]", "(Doc: plan.md)", "[5]", "[Doc: ]",
)  # fmt: skip


def reply(prompt: str, draw: random.Random) -> str:
    """A reply to any prompt, of any quality that the code survives."""
    if "depth_quality" in prompt:
        return depth_reply(draw)
    if '"claim_text"' in prompt:
        text = json.dumps({"claims": [claim(draw) for _ in range(draw.randint(20, 60))]})
        return damaged(text, draw) if draw.random() < 0.3 else text
    if '"supported"' in prompt:
        count = len(re.findall(r"(?m)^\[\d+\] claim ", prompt))
        return damaged(json.dumps({"results": [verdict(n, draw) for n in range(1, count + 1)]}), draw)
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


def claim(draw: random.Random) -> dict:
    text = "claim " + " ".join(draw.choice(["cost", "rose", "水车", "oak", "8 percent"]) for _ in range(5))
    cited = draw.choices(_CITATIONS, k=draw.choice([0, 1, 1, 1, 1, 2, 3]))
    return {"id": draw.randint(0, 9), "claim_text": text, "citations": cited, "source_type": "doc"}


def verdict(number: int, draw: random.Random) -> dict:
    found = {
        "id": number,
        "supported": draw.choice([True, True, True, False, "false", None, 1]),
        "explanation": "x",
    }
    if draw.random() < 0.05:
        found["id"] = draw.choice([number + 1, "1", 1.0, None])
    if draw.random() < 0.1:
        del found[draw.choice(["supported", "explanation", "id"])]
    return found


def with_long_sources(repo: Path) -> Path:
    """The checkout with sources in every form of text, and with pages that are cut to passages."""
    for task in (repo / "data/datasets_en").glob("0*"):
        (task / "plan.md").write_text("\nThe budget is 5 million euros in 2024.\r\n\n", encoding="utf-8")
        (task / "story.md").write_text("The wheel is of oak.\n" * 2_000, encoding="utf-8")
        rows = "".join(f'{n},"a, b {n}",水车\n' for n in range(150))
        (task / "figures.csv").write_text(rows, encoding="utf-8")
        (task / "list.json").write_text(json.dumps([{"cost": n} for n in range(3_000)]), encoding="utf-8")
        corpus = task / "long_context_sampled_64k.json"
        pages = json.loads(corpus.read_text(encoding="utf-8"))
        draw = random.Random(task.name)
        words = [
            "cost",
            "rose",
            "水车的成本",
            "oak",
            "8 percent",
            "growth.",
            "市场分析报告",
            "\n",
            "the mill",
        ]
        body = " ".join(draw.choice(words) for _ in range(9_000))
        pages.append({"title": "The long history of the mill", "page_body": body})
        corpus.write_text(json.dumps(pages, ensure_ascii=False), encoding="utf-8")
    return repo


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
    repo = with_long_sources(dr3_folder(tmp_path))
    async with DrawnJudge(reply) as theirs, DrawnJudge(reply) as judge:
        found, seconds = await run_beside(repo, theirs, _SCRIPT)
        scores, own_seconds = await ours(
            repo / "data/datasets_en", tmp_path, judge.url, format="dr3-eval",
            reports=[str(repo / "results_main/datasets_en")],
            protocols=[{"name": "dr3", "call": "published", "checkout": str(repo)}],
        )  # fmt: skip
    told(capsys, f"DR3-Eval, {len(found)} reports", (theirs, seconds), (judge, own_seconds))
    assert judge.requests == theirs.requests
    compared = averages = 0
    for report, results in found.items():
        model, task = report.split()
        expected = {"if": results.get("format_compliance"), "dq": results.get("overall_quality")}
        recall = results.get("information_recall")
        sides = recall["details"]["components"] if recall else {}
        expected["cc_lenient"] = results.get("citation_coverage")
        if results["average"]["all"] and all(one["score"] >= 0 for one in results.values()):
            expected["average_code"] = results["average"]
            averages += 1
        expected |= {
            "fa_lenient": results.get("factual_accuracy"),
            "ir": recall,
            "ir_sc": sides.get("long_context"),
            "ir_uf": sides.get("source_documents"),
        }
        for name, one in expected.items():
            value = scores[model, f"{task}@64k", name]
            if name.startswith("ir_") and recall is None:
                continue  # the code fails both sides where one fails
            lacking = one is None or one["score"] < 0
            assert value == (None if lacking else pytest.approx(one["score"] / 100, abs=1e-9)), (report, name)
            compared += not lacking
    assert compared > 12 and averages
    asked = [request for request in judge.requests if '\\"supported\\"' in request]
    assert len(asked) > 30
    for shown in ("[... ", "[片段 ", "CSV", "JSON", "story.md", "第 3-5 页", "第 2 页", "chunk 1-2"):
        assert any(shown in request for request in asked), shown


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


def _citation(draw: random.Random) -> str:
    """A citation in any form, often of a source that is nearly one."""
    name = draw.choice(
        [_title(draw), "plan.md", "A Study", "none.pdf", "x.mp3, 00:15", "chart.JPG", "The mill", "b/c.docx"]
    )
    form = draw.choice(
        ["[Doc: %s]", "[doc: %s, Page 3-5]", "[DOC: %s, page 2]", '[long_context: "%s", chunk 1-2]', "[%s]", "(%s)",
         "[long_context: %s, chunk 7]", "[RAG-%s]", "[Image: %s]", "[视频: %s]", "[Video: %s]", "[音频: %s]", "%s",
         "[文档: %s, Page 0]", '[long_context: "%s]', "[tool: %s, Page 9]"]
    )  # fmt: skip
    return form % draw.choice([name, str(draw.randint(0, 5))])


async def test_dr3_facts_are_read_as_the_reference_reads_them(tmp_path: Path) -> None:
    repo, draw = dr3_folder(tmp_path), random.Random(7)
    claims = [json.dumps({"claims": [claim(draw) for _ in range(draw.randint(0, 3))]}) for _ in range(1_500)]
    replies = [
        text for one in claims for text in (one, damaged(one, draw), damaged(damaged(one, draw), draw))
    ]
    replies += [repr(json.loads(one)) for one in claims[:200]] + [
        "",
        "null",
        '{"claims": 7}',
        '[{"claims": []}]',
    ]
    results = [json.dumps({"results": [verdict(n, draw) for n in (1, 2, 3)]}) for _ in range(1_500)]
    results += [damaged(one, draw) for one in results] + [repr(json.loads(one)) for one in results[:200]]
    results += [
        '{"results": {"id": 1}}',
        '{"results": 7}',
        '{"results": [7]}',
        '{"results": [{"id": []}]}',
        "{1, 2}",
    ]
    citations = [*_CITATIONS, *(_citation(draw) for _ in range(6_000))]
    files = ["chart.jpg", "clip.mp4", "notes.txt", "plan.md", "市场分析.docx", "x.mp3"]
    for name in files:
        (tmp_path / "files").mkdir(exist_ok=True)
        (tmp_path / "files" / name).write_text("x")
    pages = [
        {"title": title, "page_body": "x" if n % 5 else ""}
        for n, title in enumerate([*_WORDS, "A Study", "The mill"])
    ]
    (tmp_path / "pages.json").write_text(json.dumps(pages))
    (tmp_path / "facts.json").write_text(json.dumps([replies, results, citations]))
    arguments = [str(tmp_path / name) for name in ("facts.json", "files", "pages.json")]
    (listed, told, keys, names, places), _ = await run_beside(repo, None, _FACTS, *arguments)

    for text, expected in zip(replies, listed, strict=True):
        try:
            found = [[one.text, list(one.citations)] for one in claims_in(text)]
        except UnreadableReply:
            found = []
        assert found == expected, text
    assert sum(map(bool, listed)) > 2_500
    for text, expected in zip(results, told, strict=True):
        assert list(map(bool, supported_in(text, 3))) == [bool(one["supported"]) for one in expected], text
    titles = [page["title"] for page in pages]
    found_keys = [source_key(one) for one in citations]
    assert [":".join(key) for key in found_keys] == keys
    blank = [place for place, page in enumerate(pages) if not page["page_body"]]
    assert sum(place is not None for place in places) > 500
    assert [_told(place_of(one)) for one in citations] == places
    for start in range(0, len(keys), 500):
        found = found_sources(found_keys[start : start + 500], files, titles, blank)
        assert [None if one is None else [*files, *titles][one] for one in found] == names[
            start : start + 500
        ]
    assert sum(name is not None for name in names) > 1_000


def _told(place: Place | None) -> list | None:
    return None if place is None else [place.unit, place.first, place.last]


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
    """Made titles by the thousand; the titles of links and brackets in real reports, in these and other reports."""
    repo, draw = dr3_folder(tmp_path), random.Random(5)
    pairs = [(_title(draw), _title(draw)) for _ in range(6_000)]
    pairs += [(one, one[: draw.randint(0, len(one))] + other[:4]) for one, other in pairs[:3_000]]
    texts = [row["article"] for file in shared("golden/reports").glob("*.jsonl") for row in rows(file)]
    real = [name for text in texts for name in re.findall(r"\[([^\[\]\n]{4,120})\]", text)[:9]]
    real += [line.lstrip("# ") for text in texts for line in text.splitlines()[:9] if line.startswith("#")]
    pairs += [(draw.choice(real), draw.choice(real)) for _ in range(3_000)]
    reports = [(text, draw.sample(real, 20)) for text in texts]
    for _ in range(1_500):
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
    assert len(real) > 150 and 1_000 < sum(same) < 10_000 and sum(map(len, cited)) > 1_000


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
    ("claims", "support", "value", "strict", "calls"),
    [
        ("", "", None, None, 3),  # an empty reply is followed by another
        ('{"claims": []}', "", 0.0, 0.0, 1),  # the report cites nothing
        (_CLAIMS, "Well.", 0.0, None, 2),  # the code takes it as unsupported
        (_CLAIMS, '{"results": [{"id": 1, "supported": true}]}', 0.5, None, 2),
        (_CLAIMS, '{"results": [{"id": 1, "supported": true}, {"id": 2, "supported": false}]}', 0.5, 0.5, 2),
        (_CLAIMS, '{"results": [{"id": 1, "explanation": 7}]}', None, None, 2),  # the code stumbles
        (_CLAIMS.replace("plan.md", "none.pdf"), "", 0.0, 0.0, 1),  # no such source: not asked about
        (_CLAIMS.replace("plan.md", "chart.png"), "", None, None, 1),  # a picture
    ],
)
async def test_dr3_facts_that_fail_count_as_the_code_counts(
    tmp_path: Path, claims: str, support: str, value: float | None, strict: float | None, calls: int
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
    found = [scores["tern", "001@64k", name] for name in ("fa_lenient", "fa_lenient_strict")]
    assert found == [value, strict]
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
