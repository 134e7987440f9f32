"""The files of an exported run: their names, the index of words, and the folder that is there whole or not at all."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.errors import UsageError
from adjudge.engine.viewer.book import MADE_BY, MAX_WORD, WordIndex, shard_of, whole_folder, words_of
from adjudge.engine.viewer.export import file_name
from tests.viewing import unpacked


@given(st.lists(st.text(max_size=300), min_size=1, max_size=2), st.lists(st.text(max_size=300), max_size=2))
def test_file_names_are_safe_and_differ(parts: list[str], others: list[str]) -> None:
    name = file_name("report", parts)
    assert re.fullmatch(r"[a-z0-9-]{1,110}\.html", name) and not name.startswith("-")
    assert (name == file_name("report", others)) == (parts == others)


@given(st.text(max_size=200))
def test_words_are_short_and_in_a_shard(text: str) -> None:
    for word in words_of(text):
        assert (
            0 < len(word) <= MAX_WORD and 0 <= shard_of(word) < 128 and shard_of(word) == shard_of(word[:2])
        )


def test_words_of_an_index_are_found_again(tmp_path: Path) -> None:
    index = WordIndex(tmp_path / "index")
    for number in range(600):
        index.add(f"title {number}", f"link-{number}", f"the word number{number % 7} 城市 {number}")
    assert index.close() == 600
    word = "number3"
    shard = json.loads(unpacked((tmp_path / f"index/words-{shard_of(word)}.bin").read_bytes()))
    at, found = 0, []
    for step in shard[word]:
        at += step
        found.append(at)
    assert found == list(range(3, 600, 7))
    assert "城" in json.loads(unpacked((tmp_path / f"index/words-{shard_of('城')}.bin").read_bytes()))
    block = json.loads(unpacked((tmp_path / "index/docs-2.bin").read_bytes()))
    assert block[600 - 512 - 1] == ["title 599", "link-599", "the word number4 城市 599"]
    assert not list((tmp_path / "index").glob("*.unsorted"))


def test_folder_is_whole_or_not_there(tmp_path: Path) -> None:
    place = tmp_path / "site"

    def write(text: str, fail: bool = False) -> None:
        with whole_folder(place, "export") as folder:
            (folder / MADE_BY).write_text(json.dumps({"files": 2}))
            (folder / "page.html").write_text(text)
            if fail:
                raise RuntimeError

    with pytest.raises(RuntimeError):
        write("first", fail=True)
    assert list(tmp_path.iterdir()) == []
    write("first")
    with pytest.raises(RuntimeError):
        write("second", fail=True)
    assert (place / "page.html").read_text() == "first"
    write("second")
    assert (place / "page.html").read_text() == "second"
    assert [one.name for one in tmp_path.iterdir()] == ["site"]
    other = tmp_path / "other"
    other.mkdir()
    for folder in (other, place):  # somebody's own, and ours with a file that somebody added
        (folder / "thesis.txt").write_text("mine")
        with (
            pytest.raises(UsageError, match=r"export: .* holds other files; pass a new or an empty folder"),
            whole_folder(folder, "export"),
        ):
            pass
        assert (folder / "thesis.txt").read_text() == "mine"
