"""Real disks that are full, have no room for another file, or cannot be written: every command that writes says so.

Commands run in a mount namespace, on disks in memory that go with it. What each left there is copied
first. Where no disk can be mounted, the tests are skipped.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from adjudge.engine.commands.parser import parser
from adjudge.fetchers.files import MADE
from tests.commands import changed, one_line
from tests.forks import forked
from tests.full_disks import Job
from tests.nightly import WHOLE
from tests.reward_server import judge_server
from tests.stores import judgment, opened, parts, stored_keys
from tests.wheel import ROOT
from tests.worlds import ADJUDGE, lines, world
from tests.writing import EXPORTS, NEW, READERS, SERVERS, made, typed

NAMESPACE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
# What fills a disk at $1, and what is said of one that takes no more.
DISKS = {
    "full": ('cat /dev/zero >"$1/filled" 2>/dev/null || :', "No space left"),
    "no inodes": (
        ': >"$1/filled"; mount -o remount,nr_inodes=$(df --output=iused "$1" | tail -1 | tr -d " ") "$1"',
        "No space left",
    ),
    "read-only": ('mount -o remount,ro "$1"', "Read-only"),
}
RUN = """
set -e
disk=$1 kept=$2 content=$3; shift 3
mount -t tmpfs -o size=256k disk "$disk"
cp -a "$content/." "$disk"
fill() {{ {fill}; }}
fill "$disk"
"""
AND_KEEP = """
set +e
"$@"
code=$?
cp -a "$disk/." "$kept"
exit $code
"""


def mounts() -> bool:
    """Whether a disk can be mounted here."""
    if not shutil.which("unshare"):
        return False
    tried = subprocess.run([*NAMESPACE, "mount", "-t", "tmpfs", "disk", "/mnt"], capture_output=True)
    return tried.returncode == 0


pytestmark = pytest.mark.skipif(not mounts(), reason="no disk can be mounted: unshare --mount needs rights")


def command_on_disk(kind: str, folder: Path, words: list[object], then: str = 'exec "$@"') -> list[str]:
    """The command that runs `adjudge` with `words`, in which DISK stands for a disk of that `kind`.

    The disk has what is in `folder`/content; `then` of the script follows.
    """
    for name in ("disk", "kept", "content"):
        (folder / name).mkdir(exist_ok=True)
    typed = [str(word).replace("DISK", str(folder / "disk")) for word in words]
    folders = [str(folder / name) for name in ("disk", "kept", "content")]
    return [*NAMESPACE, "sh", "-c", RUN.format(fill=DISKS[kind][0]) + then, "sh", *folders, *ADJUDGE, *typed]


def on_disk(kind: str, folder: Path, words: list[object]) -> tuple[subprocess.CompletedProcess[str], Path]:
    """What `adjudge` with `words` says, as in `command_on_disk`; and what is left on the disk."""
    command = command_on_disk(kind, folder, words, AND_KEEP)
    ended = subprocess.run(command, capture_output=True, text=True, timeout=250)
    return ended, folder / "kept"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("made"))


CASES = [
    (name, kind)
    for kind in DISKS
    for name in NEW
    if WHOLE or kind == "full" or name not in EXPORTS or name == "export scores"
]
BY_OTHERS = ("database or disk is full", "is the disk full?")  # what is said where MLflow or wandb wrote


Tried = dict[tuple[str, str], tuple[int, str, Path]]


@pytest.fixture(scope="module")
def tried(here: Path, tmp_path_factory: pytest.TempPathFactory) -> Tried:
    """Of each case the exit code, what was said, and what is left on the disk."""
    jobs = []
    for name, kind in CASES:
        folder = tmp_path_factory.mktemp("case")
        disk, kept, content = (folder / place for place in ("disk", "kept", "content"))
        for place in (disk, kept, content):
            place.mkdir()
        words = [word.replace("DISK", str(disk)) for word in typed(NEW[name], here, "DISK", folder)]
        fill = DISKS[kind][0]
        jobs.append(Job(words, fill, str(disk), str(kept), str(content), str(folder / "errors")))
    command = [*NAMESPACE, sys.executable, "-m", "tests.full_disks"]
    ended = subprocess.run(command, input=msgspec.json.encode(jobs), capture_output=True, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    codes = msgspec.json.decode(ended.stdout, type=list[int])
    return {
        case: (code, Path(job.errors).read_text(), Path(job.kept))
        for case, code, job in zip(CASES, codes, jobs, strict=True)
    }


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_disk_that_takes_nothing_is_one_line_and_leaves_nothing(tried, name, kind):
    code, error, kept = tried[name, kind]
    assert code in (1, 2), error
    assert "Traceback" not in error, error
    assert any(words in error.strip().splitlines()[-1] for words in (DISKS[kind][1], *BY_OTHERS)), error
    assert not left(kept), left(kept)


def left(kept: Path) -> set[str]:
    """The names of files that are not empty, besides those of `DISKS` and of what was made."""
    files = {path.name for path in kept.rglob("*") if path.is_file() and path.stat().st_size}
    return files - {"filled", MADE}


def test_every_command_is_among_those_tried():
    (commands,) = [one for one in parser()._actions if isinstance(one, argparse._SubParsersAction)]
    assert set(commands.choices) == {words[0] for words in NEW.values()} | SERVERS | READERS.keys()


def test_machine_code_that_cannot_be_kept_is_made_all_the_same(tmp_path):
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "from adjudge.scoring.kernels.comparison.paired_tests import paired_t\n"
        "print(paired_t([[3.0], [1.0]]).mean_difference)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert ended.stdout == "[2.]\n", ended.stderr
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.nightly
@pytest.mark.parametrize(
    "name", [name for name in READERS if WHOLE or name != "agreement"]
)  # which compiles long
def test_reader_needs_no_room(here, tmp_path, name):
    """A file of no bytes is the largest that may be written."""
    words = typed(READERS[name], here, "", tmp_path)
    ended = forked(*words, limit=0)
    assert ended.returncode in (0, 1, 3, 4) and ended.stdout, ended.stderr  # 1: what `doctor` finds
    assert "Traceback" not in ended.stderr


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
    done = forked(*words, "--out", tmp_path / "gold.jsonl")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "gold.jsonl").read_text())["id"] == "1"
    ended, kept = on_disk(kind, tmp_path, [*words, "--out", "DISK/gold.jsonl"])
    assert ended.returncode in (1, 2) and DISKS[kind][1] in one_line(ended.stderr)
    assert {path.name for path in kept.iterdir()} <= {"filled"}


@pytest.mark.parametrize("kind", ["no inodes", "read-only"])
def test_label_says_where_no_file_can_be_made(here, tmp_path, kind):
    ended, kept = on_disk(
        kind, tmp_path, ["label", here / "run", "--out", "DISK/labels.jsonl", "--sample", "2"]
    )
    assert ended.returncode == 2 and DISKS[kind][1] in one_line(ended.stderr) and not left(kept)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", DISKS)
@pytest.mark.parametrize("words", [["compact"], ["prune", "--days", "0.00001"], ["repair"]], ids=" ".join)
async def test_upkeep_without_room_loses_no_row(tmp_path, words, kind):
    """Three parts of a row each, and one that is damaged, for `repair`, which needs no room for what it moves."""
    for key in range(3):
        store = await opened(tmp_path / "content")
        store.put(judgment(key))
        await store.close()
    if words[0] == "repair":
        (parts(tmp_path / "content")[0].with_name(f"{0:020d}-{0:016x}-000000.parquet")).write_bytes(
            b"damaged"
        )
    ended, kept = on_disk(kind, tmp_path, ["store", words[0], "DISK", *words[1:]])
    assert "Traceback" not in ended.stderr
    assert ended.returncode == 0 or DISKS[kind][1] in one_line(ended.stderr), ended.stderr
    assert ended.returncode or kind != "read-only"
    for damaged in kept.rglob(f"{0:020d}-*"):
        damaged.unlink()
    assert stored_keys(kept) == [0, 1, 2]


@pytest.mark.parametrize("kind", DISKS)
def test_server_without_room_gives_rewards_or_does_not_begin(tmp_path, kind):
    """On a full disk rows wait in memory; at the end it is said that they could not be kept."""
    config = world(tmp_path / "world", systems=1, tasks=1, reward={"metric": "score_clipped"})
    words = ["serve", config, "--port", "0", "--store", "DISK/store"]
    with subprocess.Popen(
        command_on_disk(kind, tmp_path, words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        if url := process.stdout.readline().strip():
            items = {"items": [{"task_id": "0", "text": "It states fact number 0."}]}
            with urllib.request.urlopen(f"{url}/v1/rewards", json.dumps(items).encode(), timeout=60) as reply:
                assert json.load(reply)["rewards"][0]["value"] is not None
            process.terminate()
        said = process.communicate(timeout=120)[1]
    assert (
        process.returncode == 1
        and DISKS[kind][1] in said.strip().splitlines()[-1]
        and "Traceback" not in said
    )
    assert bool(url) == (kind == "full")
