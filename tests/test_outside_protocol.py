"""A protocol outside the package is found by its entry point; nothing else has to change."""

import asyncio
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.forks import Done, forked
from tests.mock_openai import MockOpenAI
from tests.worlds import world

OUTSIDE = Path(__file__).parent / "outside_protocol"


def evaluate(config: Path, package: Path = OUTSIDE, command: str = "evaluate") -> Done:
    return forked(command, config, path=package)


def test_outside_protocol_runs_from_files_to_leaderboard(tmp_path):
    done = evaluate(world(tmp_path, protocols=[{"name": "wordcount", "per": 2}, "rubrics"]))
    assert done.returncode == 0, done.stderr
    assert "wordcount" in done.stdout and "rubrics" in done.stdout
    rows = pq.read_table(tmp_path / "run" / "scores.parquet").to_pylist()
    fits = [row["value"] for row in rows if row["metric"] == "fits"]
    assert fits == [1.0] * 20
    assert "200 from" not in done.stdout and "220 asked" in done.stdout


async def test_outside_protocol_sends_its_own_prompt(tmp_path):
    async with MockOpenAI() as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock"}
        done = await asyncio.to_thread(
            evaluate, world(tmp_path, systems=1, tasks=1, protocols=["wordcount"], judge=judge)
        )
        assert done.returncode == 0, done.stderr
        assert mock.last is not None and b"Is that a fitting length" in mock.last.messages


@pytest.mark.parametrize(
    "options", [{"name": "wordcount", "colour": "red"}, {"name": "wordcount", "per": "many"}]
)
def test_wrong_options_of_an_outside_protocol_are_named(tmp_path, options):
    done = evaluate(world(tmp_path, protocols=[options]))
    assert done.returncode == 2 and "wordcount" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("Of {{word}} words.", "length.en.md: its question has no field 'word'; write {{words}}"),
        (None, "length.en.md: cannot be read: No such file or directory"),
    ],
)
async def test_wrong_prompt_of_an_outside_protocol_is_named(tmp_path, prompt, said):
    copied = Path(shutil.copytree(OUTSIDE, tmp_path / "package"))
    (copied / "length.en.md").unlink()
    if prompt:
        (copied / "length.en.md").write_text(prompt)
    async with MockOpenAI() as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock"}
        config = world(tmp_path, systems=1, tasks=1, protocols=["wordcount"], judge=judge)
        for command in ("plan", "evaluate"):
            done = await asyncio.to_thread(evaluate, config, copied, command)
            assert done.returncode == 2 and said in done.stderr.splitlines()[-1], done.stderr


def planned_with(folder: Path, group: str, code: str, **options: object) -> str:
    """What `adjudge plan` says of a configuration with `options` where `code` is installed in `group` as broken."""
    (folder / "broken.py").write_text(code + "\n")
    found = folder / "broken-1.dist-info"
    found.mkdir()
    (found / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (found / "entry_points.txt").write_text(f"[{group}]\nbroken = broken:Broken\n")
    done = forked("plan", world(folder, **options), path=folder)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
        ("1 / 0", "ZeroDivisionError"),
        ("class Broken(", "SyntaxError"),
        ("raise ImportError('of two\\nlines')", "of two lines"),
        ("Other = 1", "has no attribute 'Broken'"),
        ("Broken = 1", "its entry point must be a class"),
    ],
)
def test_broken_package_is_named_in_one_line(tmp_path, code, said):
    error = planned_with(tmp_path, "adjudge.protocols", code, protocols=["broken"])
    assert "protocols: broken: " in error and said in error


@pytest.mark.parametrize(
    ("group", "options", "key"),
    [
        ("adjudge.fetchers", {"fetch": {"mode": "live", "fetcher": "broken"}}, "fetch: fetcher: broken: "),
        ("adjudge.formats", {"format": "broken"}, "format: broken: "),
    ],
)
def test_broken_fetcher_and_format_are_named_alike(tmp_path, group, options, key):
    error = planned_with(tmp_path, group, "raise OSError('of two\\nlines')", **options)
    assert f"{key}its package cannot be loaded (OSError: of two lines); repair or uninstall it" in error
