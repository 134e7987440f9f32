"""docs/rewards/: the commands of its index, and its table of every metric (`tests/trainers` types the other pages)."""

import json
import re
import shlex
import subprocess
from importlib.metadata import entry_points
from pathlib import Path

import msgspec

from adjudge.engine.rewards.flags import FLAGS
from adjudge.scoring.contract.protocol import Comparing
from tests.reward_pages import PAGES, URL, block
from tests.reward_server import reward_server
from tests.worlds import world


def test_commands_of_the_index_give_a_reward(tmp_path: Path) -> None:
    config = msgspec.yaml.decode(block("README", "yaml"))
    serve, curl = block("README", "sh").splitlines()
    assert shlex.split(serve)[:3] == ["adjudge", "serve", "rewards.yaml"]
    assert config.pop("tasks") == "tasks.jsonl"  # which is there, as is a judge that needs no model
    path = world(tmp_path, **{**config, "judge": {"backend": "lexical"}})
    with reward_server(path) as (url, _):
        reply = subprocess.check_output(shlex.split(curl.replace(URL, url)), text=True)
    (reward,) = json.loads(reply)["rewards"]
    assert reward["status"] == "scored" and 0 <= reward["value"] <= 1


def test_table_of_metrics_is_complete() -> None:
    given = {
        name: cells.strip(" |").split(" | ")
        for name, cells in re.findall(r"^\| `([\w.:]+)` (\|.*)$", PAGES["metrics"].read_text(), re.M)
    }
    known = {}
    for entry in entry_points(group="adjudge.protocols"):
        protocol = entry.load()()
        for metric in () if isinstance(protocol, Comparing) else protocol.metrics:  # which gives no reward
            if metric.ratio is None:
                ends = sorted(end for end in (metric.worst, metric.best) if end is not None)
                span = f"{ends[0]:g} to {ends[1]:g}" if len(ends) == 2 else f"from {ends[0]:g}"
                better = "lower" if metric.lower_is_better else "higher"
                known[f"{entry.name}.{metric.name}"] = (span, f"{better} is better")
    told = {name: (span, better) for name, (span, unit, better) in given.items() if unit}
    assert told == known, "docs/rewards/metrics.md lists every metric: range, unit and direction"


def test_index_lists_every_flag_and_page() -> None:
    index = PAGES["README"].read_text()
    assert all(f"`{flag}`" in index for flag in FLAGS)
    assert all(f"]({path.name})" in index for name, path in PAGES.items() if name != "README")
