"""The walks through the house stay short (docs/architecture.md, Walks)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = {"report": 13, "rollout": 10, "URL": 7}
RETURNS = {"report": 30, "rollout": 14, "URL": 4}
REPEATED = {
    "judges/lexical:terms": "the embedded judge compares one text with several others",
    "judges/lexical:figures": "the same of the numbers in it",
    "engine/tables/markdown:escaped": "cells of a table are escaped where they are written",
    "engine/tables/standings:_cell": "the cells of a system under one metric: its value, interval, rank and more",
    "scoring/deepresearch_bench/fact_questions:same_words": "repeats are dropped for each URL, then counted for all",
    "engine/store/pages:PageStore._key": "a page is looked up, and stored once it is read",
    "engine/store/place:Place.open": "a part is opened to see what it replaces, then to be read",
    "scoring/deepresearch_bench/race:Race._named": "a metric is named where it is described, and where it is scored",
    "scoring/text/citation_marks:compatible": "each sign of integrity reads a text in Unicode's compatibility form",
    "scoring/text/screen:Screen.possible": "a text is screened as it stands, without disguise, and by its sentences",
    "scoring/text/aside:storable": "a text is made fit to send for each reader of it in another process",
    "engine/store/place:Place._opened": "so is its file",
    "engine/store/place:StoredFile.__init__": "as before",
    "judges/remembering:remembered.<locals>.wrap.<locals>.call": "what is kept of a text is looked up",
    "engine/store/journal:writer_of": "a journal is listed, then taken in",
}
REPEATED_IN = {
    # The index of a snapshot is checked before a run begins, and read where pages are read, maybe on another machine.
    # A report's text is read when files are listed, and again when its turn comes.
    # Its words are counted, and looked at for what pleases a judge.
    "report": {
        "fetchers/urls:normalise_url",
        "fetchers/urls:page_key",
        "fetchers/urls:page_parts",
        "scoring/text/thoughts:parted",
        "scoring/text/citation_marks:_literal",
        "scoring/text/citation_marks:exact_url",
        "scoring/text/integrity:prose_words",
        "scoring/text/integrity:words_of",
        "scoring/text/seen:_Page.__init__",
    },
    # Addresses are read from the marks; what is counted of them is found without what that reader knows.
    "URL": {
        "fetchers/urls:normalise_url",
        "fetchers/urls:page_key",
        "fetchers/urls:page_parts",
        "scoring/text/citation_marks:_literal",
        "scoring/text/citation_marks:_trimmed",
        "scoring/text/citation_marks:clean_url",
        "scoring/text/citation_marks:exact_url",
        "scoring/text/citations:url_key",
    },
    # A flag of the rollout and a sign in every report: either may be there without the other.
    # What a reader does not see is taken from what the judge is shown, and flagged in what the rollout wrote. Flags
    # compare different words.
    "rollout": {
        "scoring/text/asked:_criteria",
        "scoring/text/integrity:injections",
        "scoring/text/integrity:prose_words",
        "scoring/text/integrity:words_of",
        "scoring/text/seen:seen",
        "scoring/text/seen:_unseen",
        "scoring/text/seen:_Page.__init__",
    },
}
# Every text is checked for secrets where it leaves the process, and what the user gave where it enters.
REDACTION = "engine/config/redaction:"


@pytest.fixture(scope="module")
def walks() -> dict[str, dict[str, list[str]]]:
    command = [sys.executable, "-m", "benchmarks.walks", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {walk["name"]: walk for walk in json.loads(done.stdout)}


@pytest.mark.parametrize("name", ROOMS)
def test_walk_enters_few_rooms(name: str, walks: dict[str, dict[str, list[str]]]) -> None:
    assert 5 < len(walks[name]["rooms"]) <= ROOMS[name]


@pytest.mark.parametrize("name", RETURNS)
def test_walk_returns_to_few_rooms(name: str, walks: dict[str, dict[str, list[str]]]) -> None:
    assert 0 < len(walks[name]["returns"]) <= RETURNS[name]


@pytest.mark.parametrize("name", ROOMS)
def test_walk_does_nothing_twice(name: str, walks: dict[str, dict[str, list[str]]]) -> None:
    allowed = set(REPEATED) | REPEATED_IN.get(name, set())
    found = {one for one in walks[name]["repeated"] if not one.startswith(REDACTION)}
    assert found <= allowed
