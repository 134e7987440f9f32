"""`hf:OWNER/NAME`: data sets of the Hub, from a Hub on loopback that speaks its HTTP API."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from adjudge.engine.formats import hub as hub_module
from adjudge.engine.formats.hub import HubError, from_hub
from adjudge.engine.runs.record import RunRecord
from tests.servers.hub import COMMIT, Hub

TASKS = json.dumps({"id": "1", "prompt": "Compare the bridges.", "gold": {}}) + "\n"
REPORTS = json.dumps({"task_id": "1", "system": "heron", "text": "The old bridge is of stone."}) + "\n"
ADDRESS = "hf:someone/bridges"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    from huggingface_hub import constants

    files = {
        "tasks.jsonl": TASKS.encode(),
        "reports/heron.jsonl": REPORTS.encode(),
        "setup.py": b"raise SystemExit",
        "model.safetensors": b"0" * 100,
    }
    with Hub(files=files) as running:
        monkeypatch.setattr(constants, "HF_HOME", str(tmp_path / "hf"))
        monkeypatch.setenv("HF_ENDPOINT", f"http://{running.address}")
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield running


def away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the Hub be where nobody listens."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")


def run_of(tmp_path: Path, **changes: object) -> RunConfig:
    return RunConfig.of(
        {
            "tasks": ADDRESS,
            "reports": [f"{ADDRESS}/reports"],
            "protocols": ["fact"],
            "fetch": {"mode": "off"},
            "store": str(tmp_path / "store"),
            "out": str(tmp_path / "run"),
            **changes,
        }
    )


def test_hub_tasks_and_reports_are_evaluated(hub: Hub, tmp_path: Path) -> None:
    result = evaluate(run_of(tmp_path))
    assert result.scorecards == 1 and not result.rejected
    record = RunRecord.read(tmp_path / "run")
    assert record.revisions == {ADDRESS: COMMIT, f"{ADDRESS}/reports": COMMIT}
    assert record.config.tasks == ADDRESS


def test_hub_address_in_a_file_is_not_a_path(tmp_path: Path) -> None:
    file = tmp_path / "adjudge.yaml"
    file.write_text(f"tasks: {ADDRESS}@v1\nreports: [{ADDRESS}/r/*.jsonl]\nprotocols: [fact]\n")
    config = RunConfig.load(file)
    assert (config.tasks, config.reports) == (f"{ADDRESS}@v1", [f"{ADDRESS}/r/*.jsonl"])


def test_hub_files_no_format_reads_stay_there(hub: Hub) -> None:
    found = from_hub(ADDRESS)
    assert [file.name for file in found.files] == ["heron.jsonl", "tasks.jsonl"]
    assert not [path for path in hub.paths() if "setup.py" in path or "safetensors" in path]
    assert (found.place / "tasks.jsonl").read_text() == TASKS


def test_hub_path_names_a_file_a_folder_or_a_pattern(hub: Hub) -> None:
    assert from_hub(f"{ADDRESS}/tasks.jsonl").place.read_text() == TASKS
    assert from_hub(f"{ADDRESS}/reports").place.name == "reports"
    assert [file.name for file in from_hub(f"{ADDRESS}@main/reports/*.jsonl").files] == ["heron.jsonl"]
    with pytest.raises(HubError, match=r"hf:someone/bridges/none: has no such file"):
        from_hub(f"{ADDRESS}/none")


def test_hub_data_is_found_again_without_network(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    first = from_hub(ADDRESS)
    asked = len(hub.log)
    assert from_hub(f"{ADDRESS}@{COMMIT}").files == first.files
    assert len(hub.log) == asked, "a commit does not change"
    away(monkeypatch)
    assert from_hub(ADDRESS) == first


def test_hub_out_of_reach_says_what_to_put_where(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    away(monkeypatch)
    with pytest.raises(HubError) as raised:
        from_hub(ADDRESS)
    said = str(raised.value)
    assert "\n" not in said and said.startswith(f"{ADDRESS}: cannot be downloaded")
    assert "hf download someone/bridges --repo-type dataset --local-dir FOLDER" in said


def test_hub_token_is_that_of_hf_token_alone(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from huggingface_hub import constants

    kept = tmp_path / "token"
    kept.write_text("hf_loggedin")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(kept))
    from_hub(ADDRESS)
    assert set(hub.tokens) == {""}
    hub.token = "hf_secret"
    with pytest.raises(HubError, match="gated; accept its terms on the Hub, and set HF_TOKEN"):
        from_hub(ADDRESS)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert from_hub(ADDRESS).commit == COMMIT


@pytest.mark.parametrize(
    "address",
    [
        "hf:bridges",
        "hf:someone/bridges@",
        "hf:../../etc/passwd",
        "hf:someone/../bridges",
        "hf:someone/bridges/../../x",
        "hf:some one/bridges",
        "hf:someone/bridges@main\n",
        "hf:someone/bridges/C:x",
        "hf:-x/bridges",
        "hf:a--b/c",
        "hf:" + "a/" * 50_000,
    ],
)
def test_hub_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(HubError) as raised:
        from_hub(address)
    assert len(str(raised.value)) < 400


def test_hub_names_that_lead_elsewhere_are_left_out(hub: Hub, tmp_path: Path) -> None:
    hub.files |= {"../out.jsonl": b"{}", "/etc/x.jsonl": b"{}", "a/../../b.jsonl": b"{}", "c\\d.jsonl": b"{}"}
    assert [file.name for file in from_hub(ADDRESS).files] == ["heron.jsonl", "tasks.jsonl"]
    assert not (tmp_path / "out.jsonl").exists()


def test_hub_sizes_are_bounded(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.stated["tasks.jsonl"] = 2_000_000_000
    with pytest.raises(HubError, match="add the path of what to read"):
        from_hub(ADDRESS)
    hub.stated["tasks.jsonl"] = 3
    with pytest.raises(HubError, match=r"tasks\.jsonl"):
        from_hub(ADDRESS)
    monkeypatch.setattr(hub_module, "MAX_FILES", 1)
    with pytest.raises(HubError, match="more than 1 files"):
        from_hub(ADDRESS)


def test_hub_cache_with_a_link_out_is_refused(hub: Hub, tmp_path: Path) -> None:
    found = from_hub(ADDRESS)
    secret = tmp_path / "secret.jsonl"
    secret.write_text(TASKS)
    (found.place / "tasks.jsonl").unlink()
    (found.place / "tasks.jsonl").symlink_to(secret)
    with pytest.raises(HubError, match="is a link that leads out of the cache; remove it"):
        from_hub(ADDRESS)


def test_hub_unknown_revision_is_named(hub: Hub) -> None:
    with pytest.raises(HubError, match="no revision 'v9'; use a branch, tag or commit of someone/bridges"):
        from_hub(f"{ADDRESS}@v9")


def test_hub_without_its_library_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['huggingface_hub'] = None\n"
        "from adjudge.engine.formats.hub import from_hub\n"
        "from_hub('hf:someone/bridges')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=os.environ, cwd=tmp_path)
    assert b"install it with: pip install 'adjudge[hub]'" in done.stderr
