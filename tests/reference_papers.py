"""The reference code of LiveDRBench and DR3-Eval in another process, on made data, before a drawn judge.

The code runs as it is; only the packages that it imports are stand-ins (`_OPENAI`, `_DATASETS`, `_DOTENV`): a client
that posts to a chat-completions server, a data set read from a file.
"""

import json
import shutil
import time
from pathlib import Path
from typing import Any

from adjudge.engine.formats.livedrbench import encrypt
from tests.reference_bench import DrawnJudge, run_python
from tests.shared_data import shared

__all__ = ["dr3_folder", "livedr_folder", "livedr_rows", "run_beside"]

_OPENAI = """
import json, os, time, urllib.request
time.sleep = lambda seconds: None

class _Node:
    def __init__(self, value):
        self.__dict__.update({k: _made(v) for k, v in value.items()})

def _made(value):
    if isinstance(value, dict):
        return _Node(value)
    return [_made(one) for one in value] if isinstance(value, list) else value

class _Completions:
    def create(self, **body):
        url = os.environ["JUDGE_URL"] + "/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return _Node(json.load(reply))

class OpenAI:
    def __init__(self, **options):
        self.chat = _Node({})
        self.chat.completions = _Completions()
"""
_DATASETS = """
import json, os

class _Rows(list):
    def to_list(self):
        return list(self)

def load_dataset(name, kind):
    return {"test": _Rows(json.load(open(os.environ["QUESTIONS"])))}
"""
_DOTENV = "def load_dotenv():\n    pass\n"

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


def dr3_folder(folder: Path) -> Path:
    """A checkout of DR3-Eval with two tasks of one set, gold, and the reports of two models; its folder."""
    repo = folder / "dr3"
    shutil.copytree(shared("reference/dr3_eval"), repo)
    base = repo / "data" / "datasets_en"
    for task, query in QUERY.items():
        case = base / task
        case.mkdir(parents=True)
        (case / "plan.md").write_text("The budget is 5 million euros in 2024.", encoding="utf-8")
        (case / "notes.txt").write_text("The wheel is of oak.", encoding="utf-8")
        for size in ("64k", "128k"):
            _json(case / f"long_context_sampled_{size}.json", PAGES)
        _json(case / "useful_search.json", [{"title": PAGES[0]["title"]}])
        gold = repo / "evaluation" / "insights" / base.name / task
        _json(gold / "gold_insights_from_long_context.json", {"gold_insights": _numbered("insight", 12)})
        _json(gold / "gold_insights_from_source.json", {"gold_insights": _numbered("insight", 2)})
        checks = repo / "evaluation" / "checklists" / base.name / task / "checklist.json"
        _json(checks, {"checklist": _numbered("requirement", 7)})
        for model in ("tern", "wren"):
            report = repo / "results_main" / base.name / "64k" / model / task / "final_report.md"
            report.parent.mkdir(parents=True)
            report.write_text(f"{REPORT}\nBy {model} on {query}\n", encoding="utf-8")
    queries = [{"number": task, "query": query} for task, query in QUERY.items()]
    (base / "query.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries), encoding="utf-8")
    _stand_ins(folder)
    return repo


def livedr_rows() -> list[dict[str, Any]]:
    """Questions of all categories, as the data set has them, but in clear."""
    info = {"primary_keys": ["name"], "main_claims": ["title", "name"], "ignore_keys": ["link"]}
    rows = [
        {"name": "MNLI", "size": 100, "link": "x"},
        {"name": "SST-2", "size": 70, "link": "y"},
        {"name": "CoLA", "size": 10},
    ]
    truths: dict[str, Any] = {
        "scifacts-materials": [[
            {"material": ["ZnO", "zinc oxide"], "paper_title": ["A", "A!"]},
            {"material": ["GaN"], "paper_title": ["B"]},
        ]],
        "scifacts-geo": [[{"paper_title": ["Rivers", "On rivers"]}, {"paper_title": ["Lakes"]}]],
        "novel-datasets-identification": [{"title": "HOT", "year": 2024, "link": "z"}],
        "novel-datasets-identi-extraction": [{"title": "HOT", "year": 2024}, rows],
        "novel-datasets-peer": [rows],
        "prior-art": [[{"title": "P1"}, {"title": "P2"}, {"title": "P3"}]],
        "entities": [["Ann Lee", "Bob Ray", "Cy Poe"]],
        "flights": [{"title": "X1", "airline": "Q"}],
    }  # fmt: skip
    return [
        {
            "key": f"{category}-{number}",
            "category": category,
            "question": f"What about {category}, in form {number}?",
            "ground_truths": truth,
            "misc": {"eval_info": info},
        }
        for category, truth in truths.items()
        for number in range(3)
    ]


def livedr_folder(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """A checkout of LiveDRBench, and `questions.jsonl` and `questions.json` with encrypted `rows`; its folder."""
    repo = folder / "livedr"
    shutil.copytree(shared("reference/livedrbench"), repo)
    closed = [
        row | {name: encrypt(json.dumps(row[name]), f"canary {row['key']}") for name in ("ground_truths", "misc")}
        | {"canary": f"canary {row['key']}"}
        for row in rows
    ]  # fmt: skip
    _json(repo / "questions.json", closed)
    (repo / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in closed), encoding="utf-8")
    _stand_ins(folder)
    return repo


async def run_beside(repo: Path, judge: DrawnJudge | None, script: str, *arguments: str) -> tuple[Any, float]:
    """What `script`, run in `repo`, prints as JSON in its last line, and the seconds it took."""
    started = time.perf_counter()
    said = await run_python(
        repo, "-c", script, *arguments,
        JUDGE_URL=judge.url if judge else "", QUESTIONS=str(repo / "questions.json"),
        OPENAI_API_KEY="k", OPENAI_BASE_URL="u", ALIBABA_MODEL="judge", FACTUAL_ACCURACY_MODEL="judge",
    )  # fmt: skip
    return json.loads(said.splitlines()[-1]), time.perf_counter() - started


def _numbered(name: str, count: int) -> list[dict[str, Any]]:
    return [{"id": n, name: f"The {name} number {n} of the mill"} for n in range(1, count + 1)]


def _json(file: Path, value: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def _stand_ins(folder: Path) -> None:
    for name, source in (("openai", _OPENAI), ("datasets", _DATASETS), ("dotenv", _DOTENV)):
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    (folder / "tqdm.py").write_text(
        "def tqdm(found=(), *rest, **options):\n    return iter(found)\n", encoding="utf-8"
    )
