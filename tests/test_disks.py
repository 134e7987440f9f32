"""Real disks that are full, have no room for another file, or cannot be written: every command that writes says so.

Each command runs in a mount namespace of its own, on a disk in memory that goes with it. What it left there is copied
first. Where no disk can be mounted, the tests are skipped.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from adjudge.fetchers.files import MADE
from tests.commands import changed, one_line
from tests.examples import shipped
from tests.reward_server import judge_server
from tests.worlds import ADJUDGE, lines, world

NAMESPACE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
# What mounts a disk at $1, and what is said of one that takes no more.
DISKS = {
    "full": ('mount -t tmpfs -o size=4k disk "$1"; head -c 4096 /dev/zero >"$1/filled"', "No space left"),
    "no inodes": ('mount -t tmpfs -o nr_inodes=2 disk "$1"; : >"$1/filled"', "No space left"),
    "read-only": ('mount -t tmpfs disk "$1"; : >"$1/filled"; mount -o remount,ro "$1"', "Read-only"),
}
RUN = """
set -e
{mount}
kept=$2; shift 2
set +e
"$@"
code=$?
cp -a "{disk}/." "$kept"
exit $code
"""


def mounts() -> bool:
    """Whether a disk can be mounted here."""
    if not shutil.which("unshare"):
        return False
    tried = subprocess.run([*NAMESPACE, "mount", "-t", "tmpfs", "disk", "/mnt"], capture_output=True)
    return tried.returncode == 0


pytestmark = pytest.mark.skipif(not mounts(), reason="no disk can be mounted: unshare --mount needs rights")


def on_disk(kind: str, folder: Path, words: list[object]) -> tuple[subprocess.CompletedProcess[str], Path]:
    """What `adjudge` with `words` says, in which DISK stands for a disk of that `kind`; and what is left on it."""
    disk, kept = folder / "disk", folder / "kept"
    disk.mkdir()
    kept.mkdir()
    typed = [str(word).replace("DISK", str(disk)) for word in words]
    script = RUN.format(mount=DISKS[kind][0], disk=disk)
    command = [*NAMESPACE, "sh", "-c", script, "sh", str(disk), str(kept), *ADJUDGE, *typed]
    return subprocess.run(command, capture_output=True, text=True, timeout=120), kept


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a world with a run that read pages, a store of its own and a list of URLs."""
    folder = tmp_path_factory.mktemp("finished")
    config = shipped("quickstart") / "adjudge.yaml"
    ended = subprocess.run(
        [*ADJUDGE, "evaluate", config, "--out", folder / "run", "--store", folder / "store"],
        capture_output=True,
    )
    assert ended.returncode == 3  # a task without gold, which the example means to show
    world(folder / "world", systems=2, tasks=2)
    (folder / "urls.txt").write_text("http://127.0.0.1:9/\n")
    return folder


WRITERS = {
    "evaluate, out": ["evaluate", "HERE/world/adjudge.yaml", "--out", "DISK/run", "--store", "HERE/other"],
    "evaluate, store": ["evaluate", "HERE/world/adjudge.yaml", "--out", "HERE/out", "--store", "DISK/store"],
    "export": ["export", "HERE/run", "--format", "scores", "--out", "DISK/out"],
    "leaderboard": ["leaderboard", "HERE/run", "--out", "DISK/out"],
    "view": ["view", "HERE/run", "--export", "DISK/out"],
    "label csv": ["label", "HERE/run", "--out", "DISK/labels.csv", "--sample", "2"],
    "snapshot": ["snapshot", "HERE/run", "--out", "DISK/pages"],
    "snapshot warc": ["snapshot", "HERE/run", "--out", "DISK/pages", "--warc"],
    "fetch": ["fetch", "HERE/urls.txt", "--allow", "127.0.0.1:9", "--store", "DISK/store"],
}  # fmt: skip


@pytest.mark.parametrize("kind", DISKS)
@pytest.mark.parametrize("name", WRITERS)
def test_disk_that_takes_nothing_is_one_line_and_leaves_nothing(finished, tmp_path, name, kind):
    words = [word.replace("HERE/o", f"{tmp_path}/o").replace("HERE", str(finished)) for word in WRITERS[name]]
    ended, kept = on_disk(kind, tmp_path, words)
    said = ended.stderr.strip().splitlines()
    assert ended.returncode in (1, 2), ended.stderr
    assert "Traceback" not in ended.stderr and DISKS[kind][1] in said[-1], ended.stderr
    left = {
        path.name: path.stat().st_size for path in kept.rglob("*") if path.is_file() and path.stat().st_size
    }
    assert set(left) <= {"filled", MADE}, left


@pytest.fixture(scope="module")
def judge() -> Iterator[str]:
    with judge_server() as url:
        yield url


@pytest.mark.parametrize("kind", DISKS)
def test_gold_is_drafted_whole_or_not_at_all(judge, tmp_path, kind):
    task = {
        "id": "1",
        "prompt": "Compare trams and buses.",
        "gold": {"race": {"reference": "Trams are quiet."}},
    }
    lines(tmp_path / "tasks.jsonl", [task])
    config = world(tmp_path, systems=1, tasks=1)
    changed(config, judge={"backend": "openai", "url": judge, "model": "mock"})
    lines(tmp_path / "tasks.jsonl", [task])
    words = ["gold", config, "--protocol", "race"]
    done = subprocess.run(
        [*ADJUDGE, *words, "--out", tmp_path / "gold.jsonl"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "gold.jsonl").read_text())["id"] == "1"
    ended, kept = on_disk(kind, tmp_path, [*words, "--out", "DISK/gold.jsonl"])
    assert ended.returncode in (1, 2) and DISKS[kind][1] in one_line(ended.stderr)
    assert {path.name for path in kept.iterdir()} == {"filled"}
