"""Files of others stay as they are, and what is said to be written is there whole: whatever is named as the output."""

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import evaluate
from adjudge.engine.errors import UsageError
from adjudge.engine.formats.recorded import folder_name
from adjudge.engine.rewards.model import RewardModel
from adjudge.engine.runs.items import Label, read_labels
from adjudge.engine.viewer.labelling import LabelFile
from adjudge.fetchers.files import MADE, file_name, own_files, write_new, write_whole
from tests.commands import one_line, run
from tests.forks import forked
from tests.result_folders import race_row, written
from tests.worlds import world

FOREIGN = b"\x00\xffsomebody else's\n"
LABEL = Label(item="v1", label="met", rater="ann")


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The folder of a run, with its store, inside a world of its own."""
    folder = tmp_path_factory.mktemp("finished")
    evaluate(str(world(folder, systems=2, tasks=2)))
    return folder / "run"


WRITERS = {
    "check": (["check", "RUN", "--min", "rubrics.score=0", "--junit", "OUT/check.xml"], "check.xml"),
    "evaluate": (["evaluate", "RUN/../adjudge.yaml", "--out", "OUT"], "leaderboard.csv"),
    "evaluate, record": (["evaluate", "RUN/../adjudge.yaml", "--out", "OUT"], "run.json"),
    "export scores": (["export", "RUN", "--format", "scores", "--out", "OUT"], "scores.csv"),
    "leaderboard": (["leaderboard", "RUN", "--out", "OUT"], "leaderboard.csv"),
    "view": (["view", "RUN", "--export", "OUT"], "index.html"),
    "label": (["label", "RUN", "--out", "OUT/labels.jsonl", "--sample", "2"], "labels.jsonl"),
    "label csv": (["label", "RUN", "--out", "OUT/labels.csv", "--sample", "2"], "labels.csv"),
}


def typed(words: list[str], run_folder: Path, out: Path) -> list[str]:
    return [word.replace("RUN", str(run_folder)).replace("OUT", str(out)) for word in words]


@pytest.mark.parametrize("name", WRITERS)
def test_file_of_somebody_else_is_not_written_over(finished, tmp_path, capsys, name):
    words, file = WRITERS[name]
    (tmp_path / file).write_bytes(FOREIGN)
    (tmp_path / "mine.txt").write_bytes(FOREIGN)
    code, _, error = run(capsys, *typed(words, finished, tmp_path))
    assert code == 2 and str(tmp_path) in one_line(error)
    assert {path.name for path in tmp_path.iterdir()} == {file, "mine.txt"}
    assert (tmp_path / file).read_bytes() == (tmp_path / "mine.txt").read_bytes() == FOREIGN


@pytest.mark.parametrize("name", ["check", "evaluate"])
def test_own_file_is_written_anew(finished, tmp_path, capsys, name):
    words, file = WRITERS[name]
    for _ in range(2):
        assert run(capsys, *typed(words, finished, tmp_path))[0] == 0
        assert (tmp_path / file).stat().st_size


def test_rows_are_not_written_over_files_of_others(tmp_path):
    """Nor do those of a run that did not begin stay in the way of the next."""
    rows = {"tasks": [{"id": "0", "prompt": "p"}], "reports": [{"task_id": "0", "system": "s", "text": "t"}]}
    options = {"protocols": ["race"], "judge": {"backend": "lexical"}, "out": str(tmp_path / "run")}
    for _ in range(2):
        with pytest.raises(UsageError, match="row 2"):
            evaluate(tasks=rows["tasks"], reports=[*rows["reports"], 7], **options)
        assert not list((tmp_path / "run").iterdir())
    (tmp_path / "run" / "tasks.jsonl").write_bytes(FOREIGN)
    with pytest.raises(UsageError, match=r"tasks\.jsonl does not belong to a run; move it away"):
        evaluate(**rows, **options)
    assert [path.read_bytes() for path in (tmp_path / "run").iterdir()] == [FOREIGN]


def test_log_of_rewards_is_not_added_to_files_of_others(tmp_path):
    (tmp_path / "log.jsonl").write_bytes(FOREIGN)
    log = {"metric": "score_clipped", "log": {"file": str(tmp_path / "log.jsonl")}}
    config = world(tmp_path / "world", systems=1, tasks=1, reward=log)
    refused = pytest.raises(UsageError, match=r"reward\.log\.file: .* holds something else")
    with refused, RewardModel(config) as model:
        model.score_sync([{"task_id": "0", "text": "x"}])
    assert (tmp_path / "log.jsonl").read_bytes() == FOREIGN


@pytest.mark.parametrize("name", ["export scores", "leaderboard"])
def test_own_files_are_written_again_until_somebody_changes_one(finished, tmp_path, capsys, name):
    words, file = WRITERS[name]
    (tmp_path / "mine.txt").write_bytes(FOREIGN)
    for _ in range(2):
        assert run(capsys, *typed(words, finished, tmp_path))[0] == 0
    (tmp_path / file).write_text("edited")
    code, _, error = run(capsys, *typed(words, finished, tmp_path))
    assert code == 2 and "holds something else" in one_line(error)
    assert (tmp_path / file).read_text() == "edited" and (tmp_path / "mine.txt").read_bytes() == FOREIGN


@pytest.mark.parametrize("name", ["view", "label", "label csv", "show"])
def test_run_that_was_moved_without_its_store_says_so(finished, tmp_path, capsys, name):
    words = ["show", "RUN", "--task", "0", "--system", "0"] if name == "show" else WRITERS[name][0]
    moved = shutil.copytree(finished, tmp_path / "elsewhere" / "run")
    record = json.loads((moved / "run.json").read_text())
    record["config"]["store"] = str(tmp_path / "elsewhere" / "store")
    (moved / "run.json").write_text(json.dumps(record))
    code, _, error = run(capsys, *typed(words, moved, tmp_path / "out"))
    assert code == 2 and "which does not exist; move a run together with its store" in one_line(error)
    assert run(capsys, *typed(WRITERS["export scores"][0], moved, tmp_path))[0] == 0


def test_runs_own_leaderboard_is_evaluates_alone(finished, tmp_path, capsys):
    before = {path.name: path.read_bytes() for path in finished.iterdir()}
    code, _, error = run(capsys, "leaderboard", finished, "--task", "0", "--out", finished)
    assert code == 2 and "leaderboard" in one_line(error)
    assert {path.name: path.read_bytes() for path in finished.iterdir()} == before


@pytest.mark.parametrize("limit", [0, 700])
@pytest.mark.parametrize("name", ["export scores", "leaderboard", "view", "label csv", "check"])
def test_disk_that_takes_no_more_leaves_nothing_half(finished, tmp_path, name, limit):
    """Files of at most `limit` bytes stand for a full disk: a write is refused, or is short."""
    words, _ = WRITERS[name]
    out = tmp_path / "out"
    done = forked(*typed(words, finished, out), limit=limit)
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr, done.stderr
    assert "adjudge: " in done.stderr.splitlines()[-1]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("limit", [0, 700])
def test_import_that_finds_no_room_leaves_nothing(tmp_path, limit):
    file = written(tmp_path / "results/raw_results.jsonl", [race_row(1, 0.5)])
    out = tmp_path / "run"
    words = ("import", file, "--format", "deepresearch-bench", "--out", out, "--system", "x")
    done = forked(*words, limit=limit)
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr, done.stderr
    assert not out.exists()


def test_short_write_of_a_label_leaves_nothing_of_it(tmp_path, monkeypatch):
    path = tmp_path / "labels.jsonl"
    labels = LabelFile(path)
    labels.add(LABEL)
    whole, write = path.read_bytes(), os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: write(file, data[:10]))
        with pytest.raises(OSError) as raised:
            labels.add(LABEL)
    assert raised.value.errno == errno.ENOSPC and path.read_bytes() == whole
    labels.add(msgspec.structs.replace(LABEL, rater="bob"))
    labels.close()
    assert [one.rater for one in read_labels(path)] == ["ann", "bob"]


@pytest.mark.parametrize("cut", [1, 9, 20])
def test_label_that_was_cut_off_does_not_lock_the_others_away(tmp_path, caplog, cut):
    path, line = tmp_path / "labels.jsonl", msgspec.json.encode(LABEL)
    path.write_bytes(line + b"\n" + line[:cut] + line + b"\n" + line[:cut])
    assert read_labels(path) == [LABEL]
    assert f"{path}:2" in caplog.text and f"{path}:3" in caplog.text
    labels = LabelFile(path)
    labels.add(msgspec.structs.replace(LABEL, rater="bob"))
    labels.close()
    assert [one.rater for one in read_labels(path)] == ["ann", "bob"]


def test_file_that_was_cut_in_its_first_label_is_taken(tmp_path):
    path = tmp_path / "labels.jsonl"
    path.write_bytes(msgspec.json.encode(LABEL)[:15])
    LabelFile(path).close()
    assert path.read_bytes() == b""


def test_new_file_is_never_an_old_one(tmp_path):
    (tmp_path / "a").write_bytes(FOREIGN)
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "a", b"x")
    write_new(tmp_path / "b", b"x")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": FOREIGN, "b": b"x"}


def test_error_inside_leaves_own_files_as_they_were(tmp_path):
    with own_files(tmp_path, remember=True) as new:
        write_whole(new / "a", b"1")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ZeroDivisionError), own_files(tmp_path) as new:
        write_whole(new / "a", b"2")
        raise ZeroDivisionError
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert json.loads((tmp_path / MADE).read_text()).keys() == {"a"}


def test_remembered_files_are_replaced_until_one_is_changed(tmp_path):
    for content in (b"1", b"2"):
        with own_files(tmp_path, remember=True) as new:
            write_whole(new / "a", content)
        assert (tmp_path / "a").read_bytes() == content
    (tmp_path / "a").write_bytes(FOREIGN)
    with pytest.raises(FileExistsError), own_files(tmp_path, remember=True) as new:
        write_whole(new / "a", b"3")
    assert (tmp_path / "a").read_bytes() == FOREIGN


def test_other_files_are_new_or_the_same(tmp_path):
    for _ in range(2):
        with own_files(tmp_path) as new:
            write_whole(new / "a", b"1")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    with pytest.raises(FileExistsError), own_files(tmp_path) as new:
        write_whole(new / "a", b"2")


def test_link_in_the_place_of_a_file_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").write_bytes(FOREIGN)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError), own_files(tmp_path / "out") as new:
        write_whole(new / "a", b"1")
    assert (tmp_path / "elsewhere").read_bytes() == FOREIGN


NAMES = st.text(st.characters(), max_size=60) | st.sampled_from(
    [
        "",
        ".",
        "..",
        "a/b",
        "a%2Fb",
        "nul\0",
        "\ud800",
        "\udfff",
        "a sample 1",
        "a",
        "/etc/passwd",
        "C:\\x",
        '<b>"*?"|</b>',
        "é",
        "e\u0301",
    ]
)


@given(NAMES, st.integers(0, 2), NAMES, st.integers(0, 2))
def test_names_are_parts_of_a_path_and_never_meet(one, sample, other, another):
    name = folder_name(one, sample)
    assert "/" not in name and "\0" not in name and name not in ("", ".", "..") and name.isprintable()
    assert len(name.encode()) < 240
    assert (name == folder_name(other, another)) == ((one, sample) == (other, another))
    assert not set(file_name(one)) & set('/\\:*?"<>|')


def test_limit_of_open_files_is_raised_where_it_may_be(tmp_path):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    script = (
        "import resource; from adjudge.engine.commands import main; h = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, h)); main._allow_open_files()\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert int(said) == min(hard if hard != resource.RLIM_INFINITY else 65_536, 65_536)
