"""The benchmark of extraction counts words and sentences as it says."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from benchmarks.extraction import measures
from benchmarks.timing import Row

SAID = "The bridge was finished in 1887. It carries 38 trains on every single day."


def test_words_are_counted_as_often_as_they_occur() -> None:
    found = measures("one one two six", "one two two three")
    assert (found["precision"], found["recall"], found["F1"]) == (0.5, 0.5, 0.5)
    assert "sentences lost" not in found and measures("", "one two")["F1"] == 0.0


@pytest.mark.parametrize(
    "text, lost", [(SAID, 0.0), (SAID[:33], 0.5), ("", 1.0), (SAID.replace("single ", ""), 0.5)]
)
def test_sentence_is_lost_without_most_of_its_pairs_of_words(text: str, lost: float) -> None:
    assert measures(text, SAID)["sentences lost"] == lost


@pytest.mark.parametrize("text, lost", [("", 1.0), (SAID[34:], 0.0), (SAID[:33], 1.0)])
def test_sentence_that_is_not_on_the_page_is_not_lost_there(text: str, lost: float) -> None:
    assert measures(text, SAID, SAID[34:])["sentences on the page lost"] == lost
    assert "sentences on the page lost" not in measures(text, SAID)


def test_a_folder_of_pages_is_measured_by_kind(tmp_path: Path) -> None:
    for folder in ("html", "ground-truth"):
        (tmp_path / folder).mkdir()
    page = f"<html><body><article><h1>The bridge</h1>{'<p>' + SAID * 5 + '</p>'}</article></body></html>"
    for name, kind, content in (
        ("1", "article", SAID * 5),
        ("2", "category", SAID * 5),
        ("3", "forum", ""),
    ):
        truth = {"_internal": {"page_type": {"primary": kind}}, "ground_truth": {"main_content": content}}
        (tmp_path / "ground-truth" / f"{name}.json").write_text(json.dumps(truth))
        (tmp_path / "html" / f"{name}.html.gz").write_bytes(gzip.compress(page.encode()))
    command = [sys.executable, "-m", "benchmarks.extraction", str(tmp_path), "--json"]
    done = subprocess.run(command, capture_output=True, check=True, cwd=Path(__file__).parent.parent)
    rows = {row.name: row.ours for row in msgspec.json.decode(done.stdout, type=list[Row])}
    assert rows["article: recall"] == 1.0 and rows["collection: sentences lost"] == 0.0
    assert rows["article: sentences lost, by all that is shown"] == 0.0
    assert rows["article: sentences on the page lost, by all that is shown"] == 0.0
    assert not [name for name in rows if name.startswith("forum")]
