"""Every command that writes, on what it needs; and those that write nothing."""

import shutil
from pathlib import Path

import msgspec

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.commands.import_results import import_results
from adjudge.engine.config.run import RunConfig
from adjudge.engine.exports.forms import FORMS
from adjudge.engine.rewards.model import RewardModel
from adjudge.engine.runs.record import RunRecord
from tests.examples import shipped
from tests.result_folders import race_row, written
from tests.reward_server import judge_server
from tests.worlds import world

_RUNS = {"livedrbench": "livedr", "dr3-eval": "dr3", "deepresearchgym": "points", "eval-results": "hub"}
_TRAINED = ("judge-sft", "judge-preferences")
EXPORTS = {
    f"export {form}": [
        *("export", f"HERE/{_RUNS.get(form, 'run')}", "--format", form, "--out", "OUT/made"),
        *(("--other", "HERE/other") if form in _TRAINED else ()),
    ]
    for form in FORMS
}
"""One of every form."""
NEW = {
    "evaluate, out": ["evaluate", "HERE/world/adjudge.yaml", "--out", "OUT/run", "--store", "ANOTHER/store"],
    "evaluate, store": ["evaluate", "HERE/world/adjudge.yaml", "--out", "ANOTHER/run", "--store", "OUT/store"],
    **EXPORTS,
    "import": ["import", "HERE/results", "--format", "deepresearch-bench", "--system", "x", "--out", "OUT/run"],
    "leaderboard": ["leaderboard", "HERE/run", "--out", "OUT/board"],
    "view": ["view", "HERE/run", "--export", "OUT/pages"],
    "label csv": ["label", "HERE/run", "--out", "OUT/labels.csv", "--sample", "2"],
    "snapshot": ["snapshot", "HERE/run", "--out", "OUT/pages"],
    "snapshot warc": ["snapshot", "HERE/run", "--out", "OUT/pages", "--warc"],
    "fetch": ["fetch", "HERE/urls.txt", "--allow", "127.0.0.1:9", "--store", "OUT/store"],
    "check": ["check", "HERE/run", "--min", "race.overall=1", "--junit", "OUT/check.xml"],
    "init": ["init", "HERE/world", "--judge", "lexical", "--out", "OUT/adjudge.yaml"],
    "rewards": ["rewards", "replay", "HERE/rewards.jsonl", "HERE/trained/adjudge.yaml", "--store", "OUT/store"],
}  # fmt: skip
"""Commands that write into an empty folder OUT. HERE is what `made` made, ANOTHER another folder."""
SERVERS = {"gold", "label", "serve", "store"}
"""Commands that write after somebody asked them to, or need a judge or a store."""
READERS = {
    "agreement": ["agreement", "HERE/run", "--other", "HERE/run"],
    "attack": ["attack"],
    "citations": ["citations", "HERE/world/reports/system0.jsonl"],
    "compare": ["compare", "HERE/world/run", "system0", "system1"],
    "doctor": ["doctor", "HERE/world/adjudge.yaml"],
    "judge": ["judge", "lexical", "--limit", "1"],
    "ls": ["ls", "HERE"],
    "plan": ["plan", "HERE/world/adjudge.yaml"],
    "show": ["show", "HERE/world/run", "--task", "0", "--system", "system0"],
}
"""Commands that write nothing."""


def made(folder: Path) -> Path:
    """What the commands need, in `folder`: runs, results, a log of rewards and a list of URLs."""
    for example, name in (("quickstart", "run"), ("livedrbench", "livedr"), ("dr3", "dr3")):
        config = shipped(example) / "adjudge.yaml"
        evaluate(RunConfig.load(config, out=str(folder / name), store=str(folder / "store")))
    with judge_server() as judge:
        config = shipped("quickstart") / "adjudge.yaml"
        told = {"out": str(folder / "other"), "store": str(folder / "store"), "judge": f"openai:{judge}#m"}
        evaluate(RunConfig.load(config, **told))
    shutil.copytree(folder / "run", folder / "hub")
    record = RunRecord.read(folder / "hub")
    config = msgspec.structs.replace(record.config, tasks="hf:example/tasks")
    msgspec.structs.replace(record, config=config).write(folder / "hub")
    evaluate(RunConfig.load(world(folder / "world", systems=2, tasks=2)))
    entry = {
        "labels": {"1": ["Supported", ""]},
        "support_rate": 100,
        "omitted_rate": 0,
        "contradicted_rate": 0,
    }
    written(folder / "gym/one/evaluation_results_kpr.json", [{"1": entry}])
    import_results(folder / "gym", "deepresearchgym", folder / "points")
    written(folder / "results/raw_results.jsonl", [race_row(1, 0.5)])
    log = {"metric": "score_clipped", "log": {"file": str(folder / "rewards.jsonl")}}
    with RewardModel(world(folder / "trained", systems=1, tasks=1, reward=log)) as model:
        assert model.score_sync([{"task_id": "0", "text": "It states fact number 0."}])[0].value is not None
    (folder / "urls.txt").write_text("http://127.0.0.1:9/\n")
    return folder


def typed(words: list[str], here: Path, out: Path | str, elsewhere: Path) -> list[str]:
    """The words of a command with the folders in them."""
    folders = {"HERE": here, "OUT": out, "ANOTHER": elsewhere}
    for name, folder in folders.items():
        words = [word.replace(name, str(folder)) for word in words]
    return words
