"""Runs as the files of other tools, read back by those tools."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import duckdb
import msgspec
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import yaml
from huggingface_hub import SpaceCardData, parse_eval_result_entries
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.commands.export import export_run
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.exports.forms import BENCHMARKS, FORMS
from adjudge.engine.exports.harbor import write_rewards
from adjudge.engine.exports.trackers import has_ended
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.store import Place
from adjudge.engine.store.scorecards import run_cards
from adjudge.fetchers.files import file_name
from tests.forks import forked
from tests.made_runs import made_run
from tests.worlds import world

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "export.md"
COMMANDS = re.findall(r"^adjudge export .*", DOCS.read_text(), re.M)


def changed(folder: Path, **fields: object) -> Path:
    """The run with other fields in its record."""
    file = folder / "run.json"
    record = json.loads(file.read_text())
    for name, value in fields.items():
        record[name] = record[name] | value if isinstance(value, dict) else value
    file.write_text(json.dumps(record))
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems whose names could lead elsewhere, on tasks of the Hub."""
    folder = made_run(tmp_path_factory.mktemp("made"), ["lab/one", "../two"], 30, missing=0.0)
    config = {"tasks": "hf:lab/tasks"}
    record = json.loads((folder / "run.json").read_text())
    return changed(folder, config=record["config"] | config, revisions={"hf:lab/tasks": "a" * 40})


def values(folder: Path) -> dict[tuple[str, str], float]:
    """Every figure of the leaderboard as it is shown."""
    board = build_leaderboard([folder])
    return {
        (row.system, f"{metric.protocol}.{metric.metric}"): row.value * metric.scale
        for metric in board.metrics
        for row in metric.standings
        if row.value is not None
    }


class Documented:
    """What the documented commands write of `run`: each runs once, as a process in a folder of its own."""

    def __init__(self, run: Path, folder: Path) -> None:
        self.run, self.folder = run, folder
        self.said: dict[str, str] = {}

    def of(self, command: str) -> Path:
        """The folder that `command` has filled."""
        words = shlex.split(command)[1:]
        form = words[words.index("--format") + 1]
        place = self.folder / form
        if command not in self.said:
            place.mkdir()
            run = self.run
            if form == "harbor":
                run = place / "run"
                evaluate(RunConfig.load(world(place, systems=2, tasks=2)))
            words = [str(run) if word == "runs/mine" else word for word in words]
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(place)
                patch.setenv("HOME", str(place))
                done = forked(*words)
            assert done.returncode == 0, done.stderr
            self.said[command] = done.stdout
        return place / words[-1]

    def tracked(self, form: str) -> Path:
        """The folder that the documented command of `form` has filled."""
        return self.of(next(command for command in COMMANDS if f"--format {form} " in command))


@pytest.fixture(scope="module")
def documented(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Documented:
    return Documented(run, tmp_path_factory.mktemp("documented"))


@pytest.mark.parametrize("command", COMMANDS)
def test_documented_command_writes_files_into_its_folder(command: str, documented: Documented) -> None:
    folder = documented.of(command)
    assert re.fullmatch(r"\d+ files? in \w+\n", documented.said[command])
    assert list(folder.rglob("*"))


def test_every_format_has_a_documented_command() -> None:
    trained = re.findall(r"^adjudge export .*", (ROOT / "docs" / "own-judge.md").read_text(), re.M)
    named = {shlex.split(command)[4] for command in (*COMMANDS, *trained)}
    assert named == set(FORMS) - set(BENCHMARKS)


def test_eval_results_are_read_by_the_hub_library(run: Path, tmp_path: Path) -> None:
    files = export_run(run, "eval-results", tmp_path).files
    assert {Path(file).relative_to(tmp_path).parts[:2] for file in files} == {
        (file_name("lab/one"), ".eval_results"),
        (file_name("../two"), ".eval_results"),
    }
    first = next(file for file in files if "one" in file and file.endswith("race.yaml"))
    entries = parse_eval_result_entries(yaml.safe_load(Path(first).read_text()))
    shown = values(run)
    assert {(entry.dataset_id, entry.dataset_revision) for entry in entries} == {("lab/tasks", "a" * 40)}
    for entry in entries:
        assert entry.value == pytest.approx(shown["lab/one", entry.task_id], abs=1e-6)
        assert entry.date == "2026-01-01T00:10:00Z" and "judge " in str(entry.notes)


def test_eval_results_need_tasks_of_the_hub(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", ["one"], 3)
    with pytest.raises(UsageError, match="evaluate with tasks: hf:OWNER/NAME"):
        export_run(folder, "eval-results", tmp_path / "out")


def test_space_is_a_static_page_with_its_metadata(run: Path, tmp_path: Path) -> None:
    export_run(run, "space", tmp_path)
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["README.md", "index.html", "leaderboard.csv", "leaderboard.json", "leaderboard.parquet"]
    _, header, body = (tmp_path / "README.md").read_text().split("---\n", 2)
    card = SpaceCardData(**yaml.safe_load(header))
    assert (card.sdk, card.app_file) == ("static", "index.html")
    assert "# Leaderboard" in body and "lab/one" in (tmp_path / "index.html").read_text()
    count = duckdb.sql(f"select count(*) from '{tmp_path}/leaderboard.parquet'").fetchall()
    assert count[0][0] > 0


def test_wandb_runs_hold_the_figures(run: Path, documented: Documented) -> None:
    """Read in a process of their own: the library warns, and not about us."""
    tracked = documented.tracked("wandb")
    read = """
import json, struct, sys
from pathlib import Path
from wandb.proto.wandb_internal_pb2 import Record

def blocks(data):  # 7 bytes of header, then LevelDB's log: blocks of 32 KB with pieces of records
    at, whole = 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            yield whole
            whole = b""

found = {}
for file in Path(sys.argv[1]).rglob("*.wandb"):
    name, own = None, {}
    for data in blocks(file.read_bytes()):
        record = Record()
        record.ParseFromString(data)
        if record.HasField("run"):
            name = record.run.display_name
        for item in record.summary.update:
            own[item.key or "/".join(item.nested_key)] = json.loads(item.value_json)
    found[name] = own
print(json.dumps(found))
"""
    done = subprocess.run([sys.executable, "-c", read, tracked], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    shown = values(run)
    assert set(found) == {"lab/one", "../two"}
    for (system, name), value in shown.items():
        assert found[system][name.replace(".", "/")] == pytest.approx(value)
    assert not list(tracked.rglob("wandb-metadata.json"))


def test_mlflow_runs_hold_the_figures(run: Path, documented: Documented) -> None:
    tracked = documented.tracked("mlflow")
    read = """
import json, sys
from mlflow import MlflowClient
client = MlflowClient(tracking_uri=f"sqlite:///{sys.argv[1]}/mlflow.db")
experiment = client.get_experiment_by_name("adjudge")
runs = client.search_runs([experiment.experiment_id])
print(json.dumps({run.info.run_name: [run.data.metrics, run.data.params, run.info.status] for run in runs}))
"""
    done = subprocess.run([sys.executable, "-c", read, tracked], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    shown = values(run)
    assert set(found) == {"lab/one", "../two"}
    for (system, name), value in shown.items():
        metrics, params, status = found[system]
        assert metrics[name.replace(".", "/")] == pytest.approx(value)
        assert status == "FINISHED" and params["judge.race"]
    with pytest.raises(UsageError, match=r"mlflow\.db exists; choose another folder"):
        export_run(run, "mlflow", tracked)


def test_wandb_run_that_was_cut_off_is_not_whole(documented: Documented, tmp_path: Path) -> None:
    whole, *_ = documented.tracked("wandb").rglob("*.wandb")
    assert has_ended(whole)
    for size in (0, 3, 90, whole.stat().st_size - 1):
        (tmp_path / "cut").write_bytes(whole.read_bytes()[:size])
        assert not has_ended(tmp_path / "cut")


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_missing_tracker_says_what_to_install(
    name: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=rf"{name} is not installed; run pip install 'adjudge\[{name}\]'"):
        export_run(run, name, tmp_path)


def test_reward_of_a_single_report_is_one_file(tmp_path: Path) -> None:
    config = RunConfig.load(world(tmp_path, systems=1, tasks=1))
    evaluate(config)
    (file,) = export_run(tmp_path / "run", "harbor", tmp_path / "verifier").files
    assert file == str(tmp_path / "verifier/reward.json")
    reward = json.loads(Path(file).read_text())
    assert all(isinstance(value, float | int) for value in reward.values())
    record = RunRecord.read(tmp_path / "run")
    (headline,) = [one.name for own in record.metrics.values() for one in own if one.headline]
    assert reward["reward"] == reward[headline]


def test_report_without_a_reward_has_no_file(tmp_path: Path) -> None:
    config = RunConfig.load(world(tmp_path, systems=2, tasks=2))
    result = evaluate(config)
    first, *others = run_cards(Place.of(config.store), RunRecord.read(Path(result.out)).run)
    failed = msgspec.structs.replace(
        first,
        scores=dict.fromkeys(first.scores),
        reasons=dict.fromkeys(first.scores, "judge_timeout"),
        status="unscored",
        reason="judge_timeout",
    )
    written = list(write_rewards([failed, *others], config, tmp_path / "rewards"))
    names = {file.relative_to(tmp_path / "rewards").as_posix() for file in written}
    assert names == {f"{card.system}/{card.task_id}/reward.json" for card in others}


@pytest.mark.parametrize(
    "name", ["..", ".", "", "a/b", "a\\b", "/etc/passwd", "a\nb", "x" * 500, "国" * 200, "\0"]
)
def test_no_name_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    found = file_name(name)
    (tmp_path / found).mkdir()
    assert (tmp_path / found).resolve().parent == tmp_path.resolve()


@given(st.text(), st.text())
def test_two_names_have_two_places(one: str, other: str) -> None:
    assert (file_name(one) == file_name(other)) == (one == other)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "|"])
def test_no_cell_of_the_scores_is_a_formula(start: str, tmp_path: Path) -> None:
    name = f"{start}1+cmd|' /C calc'!A0"
    folder = made_run(tmp_path / "run", [name, "a=b"], 3)
    parquet, table, _ = export_run(folder, "scores", tmp_path / "out").files
    read = pyarrow.csv.read_csv(table, parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True))
    assert set(read["system"].to_pylist()) == {f"'{name}", "a=b"}
    assert set(pq.read_table(parquet)["system"].to_pylist()) == {name, "a=b"}
