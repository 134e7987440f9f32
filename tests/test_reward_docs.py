"""docs/rewards/: the commands of its index, and what it lists (`tests/trainers` types the other pages)."""

import json
import shlex
import subprocess
from pathlib import Path

import msgspec

from adjudge.engine.rewards.flags import FLAGS
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


def test_index_lists_every_flag_and_page() -> None:
    index = PAGES["README"].read_text()
    assert all(f"`{flag}`" in index for flag in FLAGS)
    assert all(f"]({path.name})" in index for name, path in PAGES.items() if name != "README")
