"""docs/reproduce.md: its commands are run as written, and print the rows of the tables that they stand for."""

import asyncio
import csv
import re
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from adjudge.engine.cli.main import main
from adjudge.engine.statistics import agreement
from tests.mock_openai import MockOpenAI
from tests.paper_folders import FOLDERS, planned

PAGE = (Path(__file__).parent.parent / "docs/reproduce.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
CONFIGS = re.compile(r"^```yaml\n(# ([\w.]+)[^\n]*\n.*?)^```$", re.MULTILINE | re.DOTALL)
ROWS = re.compile(r"^\| (.*) \|$", re.MULTILINE)
SERVER = "http://127.0.0.1:8000/v1"

EXPECTED = yaml.safe_load((Path(__file__).parent / "reproduce.yaml").read_text(encoding="utf-8"))


def commands(section: str) -> list[str]:
    """The commands of the section's table, in order, each once."""
    return list(dict.fromkeys(re.findall(r"`(adjudge [^`]+)`", "\n".join(ROWS.findall(SECTIONS[section])))))


@pytest.fixture(scope="module")
def judge() -> Iterator[str]:
    """The address of a judge in another thread."""
    loop, mock = asyncio.new_event_loop(), MockOpenAI(fault=planned)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(mock.start(), loop).result()
    yield mock.url
    asyncio.run_coroutine_threadsafe(mock.stop(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.mark.parametrize("section", SECTIONS)
def test_commands_print_the_tables(section, tmp_path, monkeypatch, capsys, judge) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    monkeypatch.setattr(agreement, "RESAMPLES", 20)  # the expected rows hold no interval of an agreement
    FOLDERS[section](tmp_path)
    for text, name in CONFIGS.findall(SECTIONS[section]):
        live = text.replace(SERVER, judge).replace("{mode: live}", "{mode: snapshot, snapshot: pages}")
        (tmp_path / name).write_text(live, encoding="utf-8")
    for command in commands(section):
        said = printed(command.replace(SERVER, judge), capsys)
        if command.startswith("adjudge label"):
            fill_in(tmp_path / "verdicts.csv")
        for wanted in EXPECTED[section][command]:
            parts = ".*".join(map(re.escape, wanted.split(" ... ")))
            assert re.search(parts, said), f"{command} does not print {wanted!r}"


def fill_in(file: Path) -> None:
    """Label every item with the first of its labels, as a person would in a spreadsheet."""
    with file.open(encoding="utf-8-sig", newline="") as table:
        rows = list(csv.DictReader(table))
    with file.open("w", encoding="utf-8", newline="") as table:
        writer = csv.DictWriter(table, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | {"label": row["labels"].split(" / ")[0]} for row in rows)


def printed(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command prints, cells apart by a bar alone; fails if it does."""
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(command)[1:])
    streams = capsys.readouterr()
    assert ended.value.code in (0, None), (command, streams.err)
    return re.sub(r" *[│┃|] *", "|", streams.out.replace("\\", ""))


@pytest.mark.parametrize("section", SECTIONS)
def test_every_row_has_a_command_or_says_why_not(section) -> None:
    _, _, *rows = ROWS.findall(SECTIONS[section])
    for row in rows:
        _, shows, command, _ = map(str.strip, row.split("|"))
        assert shows and (re.fullmatch(r"`adjudge [^`]+`", command) or command.startswith("none: ")), row
    assert set(commands(section)) == set(EXPECTED[section])


def test_every_benchmark_has_its_section() -> None:
    assert list(SECTIONS) == list(FOLDERS)
