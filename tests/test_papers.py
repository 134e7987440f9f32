"""tests/papers.yaml: the commands are run as written, and print the papers' columns; docs/reproduce.md says so."""

import asyncio
import csv
import re
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from adjudge.engine.commands.main import main
from adjudge.engine.statistics import agreement
from tests.mock_openai import MockOpenAI
from tests.paper_folders import FOLDERS, planned
from tests.papers import PAGE, PAPERS, Column, rewritten

TEXT = PAGE.read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
CONFIGS = re.compile(r"^```yaml\n(# ([\w.]+)[^\n]*\n.*?)^```$", re.MULTILINE | re.DOTALL)
FIGURE = re.compile(r"-?[\d,]*\.?\d+")
SERVER = "http://127.0.0.1:8000/v1"


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


@pytest.mark.parametrize("paper", PAPERS)
def test_commands_print_every_column(paper, tmp_path, monkeypatch, capsys, judge) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    monkeypatch.setattr(agreement, "RESAMPLES", 20)  # the expected rows hold no interval of an agreement
    FOLDERS[paper](tmp_path)
    for text, name in CONFIGS.findall(SECTIONS[paper]):
        live = text.replace(SERVER, judge).replace("{mode: live}", "{mode: snapshot, snapshot: pages}")
        (tmp_path / name).write_text(live, encoding="utf-8")
    outputs: dict[str, str] = {}
    for line in PAPERS[paper]:
        if not line.command:
            continue
        if line.command not in outputs:
            outputs[line.command] = printed(line.command.replace(SERVER, judge), capsys)
            if line.command.startswith("adjudge label"):
                fill_in(tmp_path / "verdicts.csv")
        said = outputs[line.command]
        for wanted in line.prints:
            parts = ".*".join(map(re.escape, wanted.split(" ... ")))
            assert re.search(parts, said), f"{line.command} does not print {wanted!r}"
        wrong = [fault for column in line.columns if (fault := fault_of(said, column))]
        assert not wrong, f"{line.command}: {'; '.join(wrong)}"
        assert not line.by or re.search(rf"\b{line.by}\|", said), (
            f"{line.command} prints no groups by {line.by}"
        )


def cells(said: str, column: str) -> list[str]:
    """The cells under the heading `column`, in every table of a command's output."""
    found: list[str] = []
    head: list[str] | None = None
    for line in said.splitlines():
        if "|" not in line:
            head = None if line[:1] not in "┏┡├└" or not line else head
            continue
        row = line.strip().removeprefix("|").removesuffix("|").split("|")
        if head is None:
            head = row
        elif column in head and len(row) == len(head) and not set(line) <= set("|-"):
            found.append(row[head.index(column)])
    return found


def figure(cell: str) -> str | None:
    """The figure that a cell begins with, without its interval; None for other cells."""
    found = FIGURE.match(cell)
    return None if found is None else found[0]


def fault_of(said: str, column: Column) -> str:
    """What is wrong with a column of a command's output; empty if it is as the contract has it."""
    found = cells(said, column.name)
    if not found:
        return f"no column {column.name}"
    figures = [one for cell in found if (one := figure(cell)) is not None]
    first = (figures or found)[0]
    if first != column.figure:
        return f"{column.name} is {first}, not {column.figure}"
    others = {len(one.partition(".")[2]) for one in figures} - {column.decimals}
    return f"{column.name} has {others} decimals" if column.decimals is not None and others else ""


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


def test_page_has_the_tables_of_the_contract() -> None:
    assert list(SECTIONS) == list(FOLDERS) == list(PAPERS)
    assert rewritten(TEXT) == TEXT, "write them with: python -m tests.papers"


@pytest.mark.parametrize("paper", PAPERS)
def test_every_line_has_a_command_or_says_why_not(paper) -> None:
    for line in PAPERS[paper]:
        assert line.shows and [line.command, line.none, line.missing].count("") == 2, line
        assert bool(line.prints or line.columns) <= bool(line.command), line
