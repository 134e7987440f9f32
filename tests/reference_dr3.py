"""DR3-Eval: a made data set, drawn replies, and what its own code and ours make of both."""

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adjudge.engine.formats.dataset import load_dataset
from adjudge.judges.published import UnreadableReply
from adjudge.scoring.dr3_eval.dr3 import Gold
from adjudge.scoring.dr3_eval.published import dr3_wordings
from adjudge.scoring.dr3_eval.published_facts import FactWordings, found_sources, place_of, source_key
from adjudge.scoring.dr3_eval.published_replies import claims_in, depth_in, json_in, supported_in
from adjudge.scoring.dr3_eval.sandbox import Title, covered, same_title
from tests.grafting import LaidOut, made_checkout
from tests.reference_bench import DrawnJudge, Figures, ours
from tests.reference_papers import run_beside, stand_ins, write_json

_EVALUATED = """
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
replies, blocks = json.load(open(sys.argv[1]))
print(json.dumps([list(map(value, replies)), list(map(scored, blocks))]))
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
_FOLDER = """
import json, sys
from pathlib import Path
from evaluators.utils.run_all import EvaluationRunner
from evaluators.utils.document_loader import DocumentLoader
from evaluators.citation_coverage import CitationCoverageEvaluator
from evaluators.format_compliance import FormatComplianceEvaluator
from evaluators.information_recall import InformationRecallEvaluator
import eval as batch
data, results = Path("data/datasets_en"), Path("results_main/datasets_en")
found = {"systems": sorted(map(list, batch.discover_models_and_contexts(results))), "tasks": {}}
for task in sys.argv[1:]:
    loader, cites = DocumentLoader(), CitationCoverageEvaluator()
    loader.load_long_context(data / task / "long_context_sampled_64k.json")
    loader.load_source_folder(data / task)
    pages, files = InformationRecallEvaluator()._load_or_generate_insights(str(data), task, auto_extract=False)
    checklist = Path("evaluation/checklists/datasets_en") / task / "checklist.json"
    found["tasks"][task] = {
        "query": EvaluationRunner._load_query_data(None, data / "query.jsonl", task)["query"],
        "pages": [[one["title"], one["page_body"]] for one in loader.long_context],
        "required": sorted(cites._load_useful_search(data / task / "useful_search.json"))
        + sorted(cites._load_user_document_titles(data / task)),
        "files": {name: text for name, text in loader.source_documents.items()
                  if not name.startswith(("long_context", "useful_search"))},
        "insights": [[one["insight"] for one in side] for side in (pages, files)],
        "checklist": [one["requirement"] for one in FormatComplianceEvaluator()._load_checklist(checklist)],
    }
print()
print(json.dumps(found))
"""


QUERY = {"001": "Write about the costs of the mill.", "002": "水车的成本是多少？"}
PAGES = [
    {
        "title": "A Study of Costs",
        "url": "https://a.org/costs",
        "page_body": "Costs fell by 8 percent in 2021.",
    },
    {"title": "Old figures - an archive", "page_body": "Costs rose by 3 percent."},
    {"title": "Recipes", "page_body": "Bake it for an hour."},
]
REPORT = """# The mill

The budget is 5 million euros [Doc: plan.md, Page 2].
Costs fell by 8 percent [long_context: "A Study of Costs", chunk 1].
Costs rose later [long_context: "Old figures - an archive", chunk 1-2][Doc: plan.md]. It is old (Doc: none.pdf).
Nobody cites this. The wheel turns [RAG-3].
"""


_CITATIONS = (
    "[Doc: plan.md]", "[Doc: plan.md, Page 2]", "[Doc: story.md, Page 3-5]", "[文档: notes.txt]", "[doc: list.json]",
    '[long_context: "A Study of Costs", chunk 1]', '[long_context: "Old figures", chunk 1-2]', "[RAG-3]", "[RAG-9]",
    '[long_context: "The long history of the mill", chunk 0]', "[Doc: figures.csv]", "[Doc: none.pdf]", "[RAG-0]",
    "[Image: chart.jpg]", "[source_1: notes.txt]", "[Doc: The long history]", "(Doc: plan.md)", "[5]", "[Doc: ]",
)  # fmt: skip


_WORDS = (
    "A Study of Costs the mill BBC figure-2 costs... 报告 市场分析 的 水车 report.pdf (LLM) GPT-4 “quoted” ＡＢ　Ｃ "
    "l'eau chunk 3 2019 x y z notes.md image2.jpg、 WTO-2 3D-A TODO 图1 meta-analysis - \u3000 K"
).split(" ")
_CITED = (
    "[%s]", '[long_context: "%s, chunk 2", chunk 1]', "[source: “%s”]", "[Image: %s]", "[%s.md, 第1-2页]", "%s",
    "[long_context: “%s", "[long_context: '%s']", '[source: ""%s"]', "[12 3]%s", "[    %s]", "(%s)",
)  # fmt: skip


def dr3_folder(folder: Path, code: LaidOut = made_checkout) -> Path:
    """A checkout of DR3-Eval with two tasks of one set, gold, and the reports of two models; its folder.

    `code` lays out its Python files: made prompts alone, the benchmark's own code, or that code with the made prompts.
    """
    repo = code("DR3-Eval", folder / "dr3")
    base = repo / "data" / "datasets_en"
    for task, query in QUERY.items():
        case = base / task
        case.mkdir(parents=True)
        (case / "plan.md").write_text("The budget is 5 million euros in 2024.", encoding="utf-8")
        (case / "notes.txt").write_text("The wheel is of oak.", encoding="utf-8")
        for size in ("64k", "128k"):
            write_json(case / f"long_context_sampled_{size}.json", PAGES)
        write_json(case / "useful_search.json", [{"title": PAGES[0]["title"]}])
        gold = repo / "evaluation" / "insights" / base.name / task
        write_json(gold / "gold_insights_from_long_context.json", {"gold_insights": _numbered("insight", 12)})
        write_json(gold / "gold_insights_from_source.json", {"gold_insights": _numbered("insight", 2)})
        checks = repo / "evaluation" / "checklists" / base.name / task / "checklist.json"
        write_json(checks, {"checklist": _numbered("requirement", 7)})
        for model in ("tern", "wren"):
            report = repo / "results_main" / base.name / "64k" / model / task / "final_report.md"
            report.parent.mkdir(parents=True)
            report.write_text(f"{REPORT}\nBy {model} on {query}\n", encoding="utf-8")
    queries = [{"number": task, "query": query} for task, query in QUERY.items()]
    (base / "query.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries), encoding="utf-8")
    stand_ins(folder)
    return repo


def dr3_judge(repo: Path) -> DrawnJudge:
    """Tells the kinds of requests apart by how the checkout's templates begin; replies are of any quality."""
    wordings, facts = dr3_wordings(str(repo)), FactWordings.of(str(repo))
    heads = {
        kind: tuple(one.turns[-1][1].pieces[0][0] for one in found)
        for kind, found in (
            ("depth", [wordings["depth.1"], wordings["depth.2"]]),
            ("claims", [facts.claims]),
            ("recall", [wordings["recall"], wordings["compact"]]),
            ("checklist", [wordings["requirements"]]),
        )
    }

    def draw(prompt: str, by: random.Random) -> str:
        kind = next((kind for kind, head in heads.items() if prompt.startswith(head)), "support")
        return reply(kind, prompt, by)

    return DrawnJudge(draw)


def reply(kind: str, prompt: str, draw: random.Random) -> str:
    """A reply to a request of this kind, of any quality that the code survives."""
    if kind == "depth":
        return depth_reply(draw)
    if kind == "claims":
        text = json.dumps({"claims": [claim(draw) for _ in range(draw.randint(20, 60))]})
        return damaged(text, draw) if draw.random() < 0.3 else text
    if kind == "support":
        count = len(re.findall(r"(?m)^\[\d+\] claim ", prompt))
        return damaged(json.dumps({"results": [verdict(n, draw) for n in range(1, count + 1)]}), draw)
    count = max(number for number in range(1, 11) if f"\n{number}. The " in prompt)
    recall = kind == "recall"
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
    often = [16] + [1] * (len(_CITATIONS) - 1)  # more claims on one source than go into a request
    cited = draw.choices(_CITATIONS, often, k=draw.choice([0, 1, 1, 1, 1, 2, 3]))
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


def _title(draw: random.Random) -> str:
    made = draw.choice([" ", "-", ",", ""]).join(draw.choice(_WORDS) for _ in range(draw.randint(1, 6)))
    for _ in range(draw.choice([0, 0, 1, 3])):
        place = draw.randrange(len(made) + 1)
        made = made[:place] + draw.choice(["x", "é", "中", " ", ""]) + made[place + 1 :]
    return made or "x"


def _numbered(name: str, count: int) -> list[dict[str, Any]]:
    return [{"id": n, name: f"The {name} number {n} of the mill"} for n in range(1, count + 1)]


async def scored_by_code(repo: Path, judge: DrawnJudge) -> tuple[Figures, float]:
    """The scores of the reports by metric, as ours are named, of those that the code gives one; and its seconds.

    The code fails both sides of recall where one fails.
    """
    found, seconds = await run_beside(repo, judge, _EVALUATED)
    figures: Figures = {}
    for report, results in found.items():
        recall = results.get("information_recall")
        sides = recall["details"]["components"] if recall else {}
        named = {
            "if": results.get("format_compliance"),
            "dq": results.get("overall_quality"),
            "cc_lenient": results.get("citation_coverage"),
            "fa_lenient": results.get("factual_accuracy"),
            "ir": recall,
        }
        if recall:
            named |= {"ir_sc": sides.get("long_context"), "ir_uf": sides.get("source_documents")}
        if results["average"]["all"] and all(one["score"] >= 0 for one in results.values()):
            named["average_code"] = results["average"]
        for name, one in named.items():
            figures[f"{report} {name}"] = None if one is None or one["score"] < 0 else one["score"] / 100
    return figures, seconds


async def scored_by_us(repo: Path, out: Path, judge: DrawnJudge) -> tuple[Figures, float]:
    """All our scores of the same reports, and our seconds."""
    scores, seconds = await ours(
        repo / "data/datasets_en", out, judge.url, format="dr3-eval",
        reports=[str(repo / "results_main/datasets_en")],
        protocols=[{"name": "dr3", "call": "published", "checkout": str(repo)}],
    )  # fmt: skip
    return {
        f"{system} {task.partition('@')[0]} {name}": value for (system, task, name), value in scores.items()
    }, seconds


async def folder_by_code(repo: Path) -> dict[str, Any]:
    """The systems and the tasks that the code reads in the checkout."""
    found, _ = await run_beside(repo, None, _FOLDER, *QUERY)
    return {"systems": sorted(found["systems"]), **found["tasks"]}


def folder_by_us(repo: Path) -> dict[str, Any]:
    """The same by our reader."""
    reports = [str(repo / "results_main" / "datasets_en")]
    dataset = load_dataset("dr3-eval", str(repo / "data" / "datasets_en"), reports)
    found: dict[str, Any] = {"systems": sorted({("64k", report.system) for report in dataset.reports})}
    for case in dataset.cases():
        gold = case.gold("dr3", Gold)
        found[case.task.id.partition("@")[0]] = {
            "query": case.task.prompt,
            "pages": [[page.title, page.text] for page in gold.corpus],
            "required": sorted(page.title for page in gold.supportive)
            + sorted(file.name for file in gold.user_files),
            "files": {file.name: file.text for file in gold.user_files},
            "insights": [list(gold.insights.corpus or ()), list(gold.insights.user_files or ())],
            "checklist": list(gold.checklist),
        }
    return found


def drawn_replies(count: int) -> list[str]:
    """Replies to recall, depth and checklist, most of them damaged; twice `count`."""
    draw = random.Random(3)
    prompts = [
        ("recall", "\n1. The a\n2. The b\n3. The c"),
        ("depth", ""),
        ("checklist", "\n1. The a\n2. The b"),
    ]
    found = [reply(*draw.choice(prompts), draw) for _ in range(count)]
    return found + [damaged(text, draw) for text in found]


def blocks_of(replies: Sequence[str]) -> list[str]:
    """The replies that hold no JSON: the code reads tags in the text of a JSON object."""
    return [text for text in replies if not text.lstrip().startswith(("{", "[", "```")) and "{" not in text]


async def read_by_code(repo: Path, replies: Sequence[str]) -> list[list[Any]]:
    """The JSON in every reply, or None; and the depth in every block, or None."""
    write_json(repo / "replies.json", [replies, blocks_of(replies)])
    found, _ = await run_beside(repo, None, _READ, "replies.json")
    return found


def read_by_us(replies: Sequence[str]) -> list[list[Any]]:
    """The same by our readers."""

    def value(text: str) -> Any:
        try:
            return json_in(text)
        except UnreadableReply:
            return None

    def depth(text: str) -> float | None:
        try:
            return depth_in(json.dumps({"text": text})).value
        except UnreadableReply:
            return None

    return [[value(text) for text in replies], [depth(text) for text in blocks_of(replies)]]


FILES = ("chart.jpg", "clip.mp4", "notes.txt", "plan.md", "市场分析.docx", "x.mp3")


def drawn_facts(count: int) -> tuple[list[str], list[str], list[str]]:
    """Replies with claims and replies with verdicts, some of them damaged, and citations in any form."""
    draw = random.Random(7)
    claims = [json.dumps({"claims": [claim(draw) for _ in range(draw.randint(0, 3))]}) for _ in range(count)]
    replies = [
        text for one in claims for text in (one, damaged(one, draw), damaged(damaged(one, draw), draw))
    ]
    replies += [repr(json.loads(one)) for one in claims[:200]]
    replies += [
        "",
        "null",
        '{"claims": 7}',
        '[{"claims": []}]',
    ]
    results = [json.dumps({"results": [verdict(n, draw) for n in (1, 2, 3)]}) for _ in range(count)]
    results += [damaged(one, draw) for one in results] + [repr(json.loads(one)) for one in results[:200]]
    results += [
        '{"results": {"id": 1}}',
        '{"results": 7}',
        '{"results": [7]}',
        '{"results": [{"id": []}]}',
        "{1, 2}",
    ]
    return replies, results, [*_CITATIONS, *(_citation(draw) for _ in range(4 * count))]


def corpus_pages() -> list[dict[str, str]]:
    """Pages whose titles are nearly those that are cited; every fifth is empty."""
    titles = [*_WORDS, "A Study", "The mill"]
    return [{"title": title, "page_body": "x" if n % 5 else ""} for n, title in enumerate(titles)]


async def facts_by_code(repo: Path, drawn: tuple[list[str], list[str], list[str]]) -> dict[str, list[Any]]:
    """The claims of the replies, the verdicts of the results, the sources of the citations and the places in them."""
    for name in FILES:
        (repo / "files").mkdir(exist_ok=True)
        (repo / "files" / name).write_text("x")
    write_json(repo / "pages.json", corpus_pages())
    write_json(repo / "facts.json", drawn)
    (claims, told, keys, names, places), _ = await run_beside(
        repo, None, _FACTS, "facts.json", "files", "pages.json"
    )
    verdicts = [[bool(one["supported"]) for one in each] for each in told]
    return {"claims": claims, "verdicts": verdicts, "keys": keys, "names": names, "places": places}


def facts_by_us(drawn: tuple[list[str], list[str], list[str]]) -> dict[str, list[Any]]:
    """The same by our readers."""
    replies, results, citations = drawn

    def claims(text: str) -> list[list[Any]]:
        try:
            return [[one.text, list(one.citations)] for one in claims_in(text)]
        except UnreadableReply:
            return []

    pages = corpus_pages()
    titles = [page["title"] for page in pages]
    blank = [place for place, page in enumerate(pages) if not page["page_body"]]
    keys = [source_key(one) for one in citations]
    names: list[str | None] = []
    for start in range(0, len(keys), 500):
        found = found_sources(keys[start : start + 500], list(FILES), titles, blank)
        names += [None if one is None else [*FILES, *titles][one] for one in found]
    places = [place_of(one) for one in citations]
    return {
        "claims": list(map(claims, replies)),
        "verdicts": [list(map(bool, supported_in(text, 3))) for text in results],
        "keys": [":".join(key) for key in keys],
        "names": names,
        "places": [None if one is None else [one.unit, one.first, one.last] for one in places],
    }


Titles = tuple[list[tuple[str, str]], list[tuple[str, list[str]]]]


def drawn_titles(count: int, texts: Sequence[str] = ()) -> Titles:
    """Pairs of titles that are nearly the same, and reports that cite some of theirs; with those of real `texts`."""
    draw = random.Random(5)
    pairs = [(_title(draw), _title(draw)) for _ in range(4 * count)]
    pairs += [(one, one[: draw.randint(0, len(one))] + other[:4]) for one, other in pairs[: 2 * count]]
    real = [name for text in texts for name in re.findall(r"\[([^\[\]\n]{4,120})\]", text)[:9]]
    real += [line.lstrip("# ") for text in texts for line in text.splitlines()[:9] if line.startswith("#")]
    if real:
        pairs += [(draw.choice(real), draw.choice(real)) for _ in range(2 * count)]
    reports = [(text, draw.sample(real, 20)) for text in texts]
    for _ in range(count):
        named = [draw.choice(_CITED) % _title(draw) for _ in range(draw.randint(0, 6))]
        reports.append((draw.choice([" ", "\n"]).join(named), [_title(draw) for _ in range(4)]))
    return pairs, reports


async def titles_by_code(repo: Path, drawn: Titles) -> list[list[Any]]:
    """Which pairs are the same, and which titles every report cites."""
    write_json(repo / "titles.json", drawn)
    found, _ = await run_beside(repo, None, _TITLES, "titles.json")
    return found


def titles_by_us(drawn: Titles) -> list[list[Any]]:
    """The same by our rules."""
    pairs, reports = drawn
    cited = [
        [title for title, found in zip(titles, covered(text, titles), strict=True) if found]
        for text, titles in reports
    ]
    return [[same_title(Title(one), Title(other)) for one, other in pairs], cited]
