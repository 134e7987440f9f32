"""Small folders in the published layouts of five benchmarks, and a judge whose marks are known beforehand."""

import json
import shutil
from pathlib import Path

from aiohttp import web

from tests.examples import shipped
from tests.made_bench import DIMENSIONS, made_bench, marked
from tests.mock_openai import Call, MockOpenAI, completion
from tests.result_folders import dr3_result, fact_row, race_row
from tests.worlds import lines

__all__ = ["FOLDERS", "planned"]


GEMINI, OPENAI, GROK = "gemini-2.5-pro-deepresearch", "openai-deepresearch", "grok-deeper-search"
MARKS = {GEMINI: (8, 8, 8, 8), OPENAI: (4, 6, 4, 6), GROK: (1, 1, 1, 4), f"longer {OPENAI}": (6, 8, 6, 8)}
"""The judge's mark for each system on each of four tasks; every reference gets 4."""
LANGUAGES, TOPICS = ("en", "en", "zh", "zh"), ("Energy", "Health", "Energy", "Health")
A, B = "https://a.example/", "https://b.example/"
FACTS = {
    GEMINI: [(f"{what} holds", url) for url in (A, B) for what in ("One", "Two")],
    OPENAI: [("One holds", A), ("Three is wrong", B)],
    GROK: [],
}


async def planned(mock: MockOpenAI, call: Call) -> web.Response | None:
    """The reply to one of DeepResearch Bench's own requests; None leaves the reply to the server."""
    if call.is_probe or call.constrained:
        return None
    kind, _, shown = json.loads(call.messages)[-1]["content"].partition(" ")
    shown = shown.partition(": ")[2]
    match kind:
        case "CLEAN":
            return completion(shown)
        case "MARKS":
            _, article, reference, _ = shown.split("|")
            return completion(marked(_mark(article, call.model), 8 if "another" in reference else 4))
        case "EXTRACT":
            facts = FACTS[_system(shown)]
            return completion(json.dumps([{"fact": fact, "ref_idx": 1, "url": url} for fact, url in facts]))
        case "DEDUPLICATE":
            return completion("[1, 2]")
        case "VALIDATE":
            said = [
                "supported" if "holds" in line else "unsupported" for line in shown.split("|")[1].split("\n")
            ]
            return completion(
                json.dumps([{"idx": place, "result": one} for place, one in enumerate(said, 1)])
            )
    return None


def _mark(article: str, judge: str) -> int:
    if judge == "o3" and _system(article) == GEMINI:
        return 3
    longer = f"longer {OPENAI}"
    return MARKS[longer if longer in article else _system(article)][int(article.partition("task ")[2][0]) - 1]


def _system(article: str) -> str:
    return next(system for system in FACTS if system in article)


def _articles(system: str) -> list[object]:
    text = "The report of {} on task {}. "
    return [{"id": n, "prompt": f"Task {n}?", "article": text.format(system, n) * 9} for n in range(1, 5)]


def deepresearch_bench(folder: Path) -> None:
    """A checkout with four tasks and recorded results, the Hub set's reports, marks, preferences and pages."""
    for name, reference in (
        ("deep_research_bench", "a reference"),
        ("another_reference", "another reference"),
    ):
        data = made_bench(folder / name) / "data"
        tasks = [
            {"id": n, "prompt": f"Task {n}?", "language": LANGUAGES[n - 1], "topic": TOPICS[n - 1]}
            for n in range(1, 5)
        ]
        each = {one: [{"criterion": f"{one}!", "explanation": "", "weight": 1.0}] for one in DIMENSIONS}
        weights = {"dimension_weight": dict.fromkeys(DIMENSIONS, 0.25), "criterions": each}
        lines(data / "prompt_data/query.jsonl", tasks)
        lines(data / "criteria_data/criteria.jsonl", [task | weights for task in tasks])
        lines(data / "test_data/cleaned_data/reference.jsonl", _articles(reference))
    results = folder / "deep_research_bench/results"
    lines(
        results / "race/sonar/raw_results.jsonl",
        [race_row(n, share) for n, share in enumerate((0.4, 0.5, 0.6, 0.3), 1)],
    )
    verdicts = ({A: ["supported", "unsupported"], B: ["unknown"]}, {}, {A: ["supported", "supported"]})
    lines(results / "fact/sonar/validated.jsonl", [fact_row(n, one) for n, one in enumerate(verdicts, 1)])
    for system in FACTS:
        lines(folder / f"DeepResearch-Bench-Dataset/generated_reports/{system}.jsonl", _articles(system))
    lines(folder / f"longer/{OPENAI}.jsonl", _articles(f"longer {OPENAI}"))
    people = {GEMINI: 9, OPENAI: 6, GROK: 3}
    names = ("Comprehensiveness", "Insight", "Instruction-Following", "Readability")
    annotated = [
        {"id": n, "dimension_scores": {one: dict.fromkeys(names, mark - who) for one, mark in people.items()}}
        for n in range(1, 5)
        for who in range(3)
    ]
    lines(folder / "human_RACE_annotation.jsonl", annotated)
    lines(
        folder / "preferences.jsonl",
        [{"task_id": str(n), "chosen": [GEMINI], "rejected": [OPENAI, GROK]} for n in range(1, 5)],
    )
    labels = [
        {
            "task_id": str(n),
            "system": OPENAI,
            "what": what,
            "url": url,
            "label": "supported" if right else "unsupported",
        }
        for n in range(1, 5)
        for (what, url), right in zip(FACTS[OPENAI], (True, n == 1), strict=True)
    ]
    lines(folder / "labels.jsonl", labels)
    (folder / "table1.csv").write_text(
        f"system,Overall,C. Acc.\n{OPENAI},46.98,77.96\n{GEMINI},48.88,81.44\n"
    )
    lines(folder / "pages/index.jsonl", [{"url": A, "file": "a.html"}, {"url": B, "file": "a.html"}])
    (folder / "pages/a.html").write_text("<p>The page says so, in a few words.</p>")


def rigorous_bench(folder: Path) -> None:
    """The example's queries and logs; of one system, the times are known."""
    shutil.copytree(shipped("rigorous"), folder / "rigorous_bench")
    queries = folder / "rigorous_bench/DrBench.jsonl"
    read = [json.loads(line) for line in queries.read_text(encoding="utf-8").splitlines()]
    log = folder / "rigorous_bench/Log_heron.jsonl"
    times = {"inference_seconds": 90, "retrieval_seconds": 30}
    lines(log, [json.loads(line) | times for line in log.read_text(encoding="utf-8").splitlines()])
    lines(queries, [row | {"domain": domain} for row, domain in zip(read, ("Energy", "Health"), strict=True)])


def livedrbench(folder: Path) -> None:
    """The example's questions and answers, people's figures, and recorded results of one system in two categories."""
    (folder / "LiveDRBench").mkdir()
    shutil.copy(shipped("livedrbench") / "questions.jsonl", folder / "LiveDRBench")
    shutil.copytree(shipped("livedrbench") / "predictions", folder / "predictions")
    answers = folder / "predictions/tern.json"
    rows = json.loads(answers.read_text(encoding="utf-8"))
    traced = {"trace": ["Search: members", "Read https://a.example/ and http://b.example/", "Again"]}
    answers.write_text(json.dumps([row | traced if row["key"] == "e1" else row for row in rows]))
    people = [
        f"{row['key']},{system},rater,livedr.{metric},{share}"
        for system in ("tern", "heron")
        for row in rows
        for metric, share in (("precision", 0.5), ("recall", 0.25), ("f1", 1 / 3))
    ]
    (folder / "people.csv").write_text("\n".join(["task_id,system,rater,metric,value", *people]))
    figures = (("f1", "flights", 0.5), ("f2", "flights", 0.3), ("e1", "entities", 1.0))
    recorded = [
        {"key": key, "category": category, "precision": f1, "recall": f1, "f1": f1}
        for key, category, f1 in figures
    ]
    (folder / "livedr_results").mkdir()
    (folder / "livedr_results/sonar.json").write_text(json.dumps(recorded))


def dr3_eval(folder: Path) -> None:
    """A checkout with two tasks of two sizes, two models' reports, recorded results and people's scores."""
    repo = folder / "DR3-Eval"
    base = repo / "data/datasets_en"
    lines(base / "query.jsonl", [{"number": n, "query": f"Write about mill {n}."} for n in ("001", "002")])
    pages = [
        {"title": "A Study of Costs", "url": "https://a.example/", "page_body": "Costs fell by 8 percent."}
    ]
    for n in ("001", "002"):
        (base / n).mkdir()
        (base / n / "plan.md").write_text("The budget is 5 million euros.")
        (base / n / "useful_search.json").write_text(json.dumps([{"title": "A Study of Costs"}]))
        for side in ("long_context", "source"):
            gold = repo / f"evaluation/insights/datasets_en/{n}/gold_insights_from_{side}.json"
            gold.parent.mkdir(parents=True, exist_ok=True)
            gold.write_text(json.dumps({"gold_insights": [{"insight": "Costs fell."}]}))
        checklist = repo / f"evaluation/checklists/datasets_en/{n}/checklist.json"
        checklist.parent.mkdir(parents=True)
        checklist.write_text(json.dumps({"checklist": [{"requirement": "It names the budget."}]}))
        for size in ("64k", "128k"):
            (base / n / f"long_context_sampled_{size}.json").write_text(json.dumps(pages))
            for model in ("tern", "wren"):
                case = repo / f"results_main/datasets_en/{size}/{model}/{n}"
                case.mkdir(parents=True)
                cited = " [Doc: plan.md]" if model == "tern" else ""
                (case / "final_report.md").write_text(f"The budget is 5 million euros{cited}.")
    for n, recall, depth in (("001", 40.0, 60.0), ("002", 50.0, 80.0)):
        case = repo / f"results_main/datasets_en/64k/tern/{n}"
        sides = {name: {"score": recall, "available": True} for name in ("long_context", "source_documents")}
        dr3_result(case, "information_recall", recall, components=sides)
        dr3_result(case, "overall_quality", depth)
    claims = [
        {"task_id": f"{n}@64k", "system": "tern", "claim": claim}
        for n in ("001", "002")
        for claim in ("The budget is 5 million euros.", "The mill is of oak.")
    ]
    lines(folder / "claims.jsonl", claims)
    _ratings(
        folder,
        "dr3.dq",
        [(f"{n}@{size}", s) for n in ("001", "002") for size in ("64k", "128k") for s in ("tern", "wren")],
    )


def drmi_bench(folder: Path) -> None:
    """The example's papers and reports, and people's scores."""
    shutil.copytree(shipped("drmi"), folder / "drmi_bench")
    cases = [(task, system) for task in ("coating", "wetland") for system in ("osprey (isolated)", "plover")]
    _ratings(folder, "drmi.reasoning_accuracy", cases)


def _ratings(folder: Path, metric: str, cases: list[tuple[str, str]]) -> None:
    rows = [
        f"{task},{system},{rater},{metric},{ord(system[0]) % 4 + rater}"
        for task, system in cases
        for rater in (1, 2)
    ]
    (folder / "ratings.csv").write_text("\n".join(["task_id,system,rater,metric,value", *rows]))


FOLDERS = {
    "DeepResearch Bench": deepresearch_bench,
    "Rigorous Bench": rigorous_bench,
    "LiveDRBench": livedrbench,
    "DR3-Eval": dr3_eval,
    "Dr.Mi-Bench": drmi_bench,
}
"""By the heading of docs/reproduce.md."""
