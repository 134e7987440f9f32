"""DR Tulu's reward, LiveResearchBench's graders and FACT's statistics: what their own code makes of drawn verdicts.

Each is run in another process, without the client libraries that it imports.
"""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.shared_data import reference

__all__ = [
    "REWARDS", "SEEDS", "SHARES", "cited_tasks", "drawn_failures", "drawn_rewards", "graded_by_code", "lose_pages",
    "lost_pages", "problem_replies", "rewards_by_code", "statistics_by_code", "verdicts_of", "winner",
]  # fmt: skip

REWARDS = ("rubric_reward", "persistent_rubric_reward", "adaptive_rubric_reward")
WEIGHTS = (1.0, 3.0, 2.0, 0.5, -1.0, -2.0, 0.25)
SEEDS = (0, 1, 2)
SHARES = (0.0, 0.2, 0.6)
REASONS = ("page_gone", "page_blocked", "page_barred", "page_timeout", "page_server_error")

_REWARDED = """
import importlib, json, sys
from pathlib import Path
from types import ModuleType
folder = Path(sys.argv[1])
for name in ("litellm", "jsonlines", "openai"):
    sys.modules[name] = ModuleType(name)
sys.modules["openai"].AzureOpenAI = object
for name, path in (("open_instruct", folder.parent), ("open_instruct.search_rewards", folder)):
    sys.modules[name] = package = ModuleType(name)
    package.__path__ = [str(path)]
code = importlib.import_module("open_instruct.search_rewards.longform_rubric_rewards")
now = {}

async def reply(user_prompt, **_):
    score = now[user_prompt.partition("<criterion>")[2].partition("</criterion>")[0]]
    return "" if isinstance(score, str) else json.dumps({"score": score})

sys.modules["open_instruct.search_rewards.utils.rubric_utils"].run_litellm_async = reply
found = []
for truth, scores in json.load(sys.stdin):
    now.clear()
    now.update(scores)
    values = code.compute_weighted_rubric_reward("<answer>Some facts.</answer>", truth)["log_values"]
    found.append([values[name] for name in sys.argv[2:]])
print()
print(json.dumps(found))
"""

_GRADED = """
import asyncio, json, sys, types

cases = json.load(sys.stdin)
now = {}

class Client:
    async def generate_with_schema_async(self, **asked):
        reply = now["replies"].pop(0)
        return reply

clients = types.ModuleType("liveresearchbench.common.model_clients")
clients.create_ai_client = lambda provider, **options: Client()
sys.modules["liveresearchbench.common.model_clients"] = clients
common = types.ModuleType("liveresearchbench.common")
common.__path__ = []
sys.modules["liveresearchbench.common"] = common
package = types.ModuleType("liveresearchbench")
package.__path__ = [sys.argv[1] + "/liveresearchbench"]
sys.modules["liveresearchbench"] = package

from liveresearchbench.criteria.citation import CITATION_RUBRIC
from liveresearchbench.criteria.consistency import CONSISTENCY_RUBRIC
from liveresearchbench.criteria.presentation import PRESENTATION_QUESTIONS
from liveresearchbench.graders.checklist_grader import ChecklistGrader
from liveresearchbench.graders.pairwise_grader import PairwiseGrader
from liveresearchbench.graders.pointwise_grader import PointwiseGrader


async def graded(case):
    now["replies"] = case["replies"]
    kind = case["kind"]
    if kind == "depth":
        return await PairwiseGrader().grade_async("q", "own", "depth", report_b="other")
    if kind in ("consistency", "citation"):
        return await PointwiseGrader().grade_async("q", "own", kind, current_date="today")
    more = {} if kind == "presentation" else {"checklists": case["checklists"]}
    return await ChecklistGrader().grade_async("q", "own", kind, current_date="today", **more)

found = [asyncio.run(graded(case)) for case in cases]
rubrics = {"consistency": CONSISTENCY_RUBRIC, "citation": CITATION_RUBRIC}
print()
print(json.dumps({"found": found, "rubrics": rubrics, "questions": len(PRESENTATION_QUESTIONS)}))
"""


def _printed(script: str, arguments: list[str], asked: Any) -> Any:
    """What `script` prints as JSON in its last line, given `asked`."""
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    return json.loads(done.stdout.splitlines()[-1])


# DR Tulu: rows of rubrics, and a judge's scores from 0 to 2 by description

Rewarded = tuple[dict[str, Any], dict[str, Any]]


def _ground_truth(rng: random.Random) -> dict[str, Any]:
    """A row with one to twelve rubrics, some with equal titles."""
    count = rng.randint(1, 12)
    rubrics = [
        {"description": f"Names fact {n}.", "title": f"Fact {n % 5}", "weight": rng.choice(WEIGHTS)}
        for n in range(count)
    ]
    kinds = [rng.choice(["persistent", "adaptive"]) for _ in range(count)]
    return {"query": "Which facts?", "rubrics": rubrics, "rubrics_types": kinds}


def drawn_rewards() -> list[Rewarded]:
    """Rows whose rubrics are all scored."""
    rng, found = random.Random(25), []
    for _ in range(200):
        truth = _ground_truth(rng)
        found.append((truth, {one["description"]: rng.randint(0, 2) for one in truth["rubrics"]}))
    return found


def drawn_failures() -> list[Rewarded]:
    """Rows of which the judge leaves one rubric without a score."""
    rng, found = random.Random(26), []
    for _ in range(50):
        truth = _ground_truth(rng)
        names = [one["description"] for one in truth["rubrics"]]
        scores: dict[str, Any] = {name: rng.randint(0, 2) for name in names}
        scores[rng.choice(names)] = "judge_timeout"
        found.append((truth, scores))
    return found


def rewards_by_code(rows: list[Rewarded]) -> list[list[float]]:
    """The REWARDS of every row by the training code."""
    folder = reference("dr-tulu/rl/open-instruct/open_instruct/search_rewards")
    found: list[list[float]] = _printed(_REWARDED, [str(folder), *REWARDS], rows)
    return found


# LiveResearchBench: replies of its graders' judge


def problem_replies(score: dict[int, int]) -> list[dict[str, Any]]:
    """Replies with so many problems and this score, for both graders that count them."""
    return [
        {
            "kind": kind,
            "replies": [{"specific_issues": ["x"] * count, "total_issues": count, "score": score[count]}],
        }
        for kind in ("consistency", "citation")
        for count in score
    ]


def verdicts_of(seed: int) -> tuple[list[bool], list[bool], list[list[list[int]]]]:
    """Verdicts on presentation and on a checklist, and marks for depth: of both reports in both orders."""
    verdicts = [(seed + number * number) % 3 > 0 for number in range(10)]
    checklist = [(seed * 7 + number) % 2 > 0 for number in range(5 + seed)]
    return verdicts, checklist, [[[3, 2, 4, seed, 1], [2, 2, 2, 2, 2]], [[seed, 5, 1, 0, 3], [2, 2, 3, 1, 1]]]


def winner(first: list[int], second: list[int]) -> str:
    """Who wins with these marks, in the graders' letters."""
    lead = sum(first) - sum(second)
    return "tie" if abs(lead) <= 1 else "A" if lead > 0 else "B"


def graded_by_code(score: dict[int, int]) -> dict[str, Any]:
    """The graders' tables to 40 problems, what they make of `problem_replies` and of `verdicts_of` every seed."""
    cases = problem_replies(score)
    for seed in SEEDS:
        verdicts, checklist, pairs = verdicts_of(seed)
        depth = [{"winner": winner(*pairs[0])}, {"winner": winner(*reversed(pairs[1]))}]
        cases += [
            {"kind": "presentation", "replies": [_evaluations("p", verdicts)]},
            {
                "kind": "coverage",
                "replies": [_evaluations("q", checklist)],
                "checklists": ["x"] * len(checklist),
            },
            {"kind": "depth", "replies": depth},
        ]
    said = _printed(_GRADED, [str(reference("LiveResearchBench"))], cases)
    found = {
        "questions": said["questions"],
        "tables": {kind: _table_of(rubric) for kind, rubric in said["rubrics"].items()},
        "problems": [[one["total_issues"], one["score"]] for one in said["found"][: 2 * len(score)]],
    }
    rest = iter(said["found"][2 * len(score) :])
    for seed in SEEDS:
        presentation, coverage, compared = next(rest), next(rest), next(rest)
        won = [compared[f"winner_comparison_{order}"] for order in (1, 2)]
        found[f"seed {seed}"] = {
            "presentation": presentation["summary"]["average_pass_rate"],
            "coverage": coverage["summary"]["percentage_addressed"],
            "won": won.count("evaluated_model"),
            "ties": won.count("tie"),
        }
    return found


def _evaluations(key: str, met: list[bool]) -> dict[str, Any]:
    return {"evaluations": {f"{key}{at}": {"score": int(one)} for at, one in enumerate(met, 1)}}


def _table_of(rubric: str) -> list[int]:
    """Their table of scores by number of problems, written out to 40."""
    found = {}
    for line in rubric.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[0].isdigit():
            low, _, high = cells[1].rstrip("+").partition("-")
            last = 40 if cells[1].endswith("+") else int(high or low)
            found |= dict.fromkeys(range(int(low), last + 1), int(cells[0]))
    return [found[count] for count in range(41)]


# FACT: tasks with verdicts, and its statistics of them


def cited_tasks() -> list[dict[str, Any]]:
    """Made tasks as the code's last step leaves them: statements by URL, and a verdict on each."""
    draw, tasks = random.Random(9), []
    for number in range(1, 13):
        groups: dict[str, Any] = {}
        for place in range(draw.choice([0, 1, 3, 6])):
            facts = [f"Fact {number}.{place}.{n} holds" for n in range(draw.randint(1, 4))]
            said = draw.choices(["supported", "unsupported", "unknown"], k=len(facts))
            groups[f"https://s{number}.example/{place}"] = {
                "facts": facts,
                "validate_res": [{"idx": n, "result": one} for n, one in enumerate(said)],
                "validate_error": None,
            }
        citations = [{"fact": fact, "url": url} for url, group in groups.items() for fact in group["facts"]]
        tasks.append({"id": number, "citations": citations, "citations_deduped": groups})
    return tasks


def lost_pages(tasks: list[dict[str, Any]], share: float, seed: int) -> list[dict[str, str]]:
    """A draw of the pages that were not read, `share` of them, with the reason, by URL for each task."""
    draw = random.Random(seed)
    found = []
    for task in tasks:
        urls = [url for url in task["citations_deduped"] if url.startswith("http")]
        found.append({url: draw.choice(REASONS) for url in urls if draw.random() < share})
    return found


def lose_pages(tasks: list[dict[str, Any]], lost: list[dict[str, str]]) -> None:
    """Note in `tasks` that the pages at these URLs were not read, and leave out what is not a URL."""
    for task, urls in zip(tasks, lost, strict=True):
        groups = task["citations_deduped"]
        for url in urls:
            groups[url] |= {"validate_res": [], "validate_error": "no reference"}
        task["citations_deduped"] = {url: group for url, group in groups.items() if url.startswith("http")}
        task["citations"] = [one for one in task["citations"] if one["url"].startswith("http")]


def statistics_by_code(tasks: list[dict[str, Any]], folder: Path) -> dict[str, float]:
    """What the reference `stat.py` says of `tasks`."""
    script = reference("deep_research_bench/utils/stat.py")
    (folder / "stat.py").write_text(script.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "utils.py").write_text(
        "import json\ndef load_jsonl(path):\n    return [json.loads(line) for line in open(path, encoding='utf-8')]\n",
        encoding="utf-8",
    )
    (folder / "tqdm.py").write_text("def tqdm(rows):\n    return rows\n", encoding="utf-8")
    (folder / "in.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks), encoding="utf-8")
    command = [sys.executable, "stat.py", "--input_path", "in.jsonl", "--output_path", "out.txt"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
    lines = (folder / "out.txt").read_text(encoding="utf-8").splitlines()
    return {name: float(value) for name, _, value in (line.partition(": ") for line in lines)}
