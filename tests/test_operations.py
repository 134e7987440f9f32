"""Every step of docs/operations.md, typed after what it is for has happened."""

import asyncio
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adjudge.engine.store import Place
from adjudge.engine.store.upkeep import contents
from tests.commands import run
from tests.stores import judgment, killed
from tests.worlds import world

DOCS = Path(__file__).parents[1] / "docs" / "operations.md"
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", DOCS.read_text(), re.M | re.S))
ANSWERS = 200  # of the world


def steps(section: str) -> list[list[str]]:
    """The commands of a section."""
    blocks = re.findall(r"^```sh\n(.*?)^```", SECTIONS[section], re.M | re.S)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


@pytest.fixture
def typed(tmp_path, monkeypatch, capsys) -> Iterator[Callable[[str], str]]:
    """Types every command of a section in the folder of a finished run; all that they print. None may fail."""
    world(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "evaluate", "adjudge.yaml")[0] == 0

    def type_all(section: str) -> str:
        said = ""
        for program, *words in steps(section):
            if program == "adjudge":
                code, out, errors = run(capsys, *words)
                assert code == 0, (words, errors)
                said += out
            else:
                subprocess.run([program, *words], check=True)
        return said

    yield type_all


def judgments(folder: str = "store") -> int:
    return contents(Place.of(folder))[0].rows


def test_every_section_has_its_test():
    assert list(SECTIONS) == [
        "A full disk",
        "A killed run or reward server",
        "A damaged part",
        "A lost machine",
        "Many small files",
        "An output that is already there",
    ]


def test_run_goes_on_after_a_full_disk(typed, tmp_path):
    for part in (tmp_path / "store" / "judgments").glob("*.parquet"):
        part.unlink()  # it could not be written
    assert "200 asked" in typed("A full disk")
    assert judgments() == ANSWERS


def test_journal_of_a_killed_writer_is_taken_in(typed, tmp_path):
    asyncio.run(killed(tmp_path / "elsewhere", judgment(1)))
    for journal in (tmp_path / "elsewhere" / "judgments").glob(".*.journal"):
        shutil.move(journal, tmp_path / "store" / "judgments")
    typed("A killed run or reward server")
    assert judgments() == ANSWERS + 1


def test_damaged_part_is_moved_and_asked_again(typed, tmp_path):
    (part,) = (tmp_path / "store" / "judgments").glob("*.parquet")
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    assert "200 asked" in typed("A damaged part")
    assert judgments() == ANSWERS and (part.parent / "damaged" / part.name).exists()


def test_copy_of_a_store_is_a_store(typed):
    assert "all answered from the store" in typed("A lost machine")
    assert judgments("copy") == ANSWERS


def test_small_parts_become_one(typed, tmp_path):
    (part,) = (tmp_path / "store" / "judgments").glob("*.parquet")
    for number in range(3):
        shutil.copy(part, part.with_name(f"{number:020d}-{number:016x}-000000.parquet"))
    typed("Many small files")
    assert contents(Place.of("store"))[0].parts == 1 and judgments() == ANSWERS


def test_files_that_are_written_are_own_ones(typed, tmp_path):
    for _ in range(2):
        typed("An output that is already there")
    assert (tmp_path / "tables" / "scores.csv").exists()
