"""Whatever reads untrusted text takes steps that grow no faster than the text, whatever the text is made of."""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from adjudge.scoring.text import citations
from adjudge.scoring.text.accounted import addresses
from adjudge.scoring.text.citations import MAX_FACTS, MAX_MARKS, MAX_REFERENCES, parse
from benchmarks.growth import AIM_TIMES, memory
from tests.growth import GRAMMAR, READERS, hostile, public_readers
from tests.nightly import quick_or_whole

UNIT = 1_500  # characters; from twice as many on, no reader takes a text whole that it would otherwise cut up
NOISE = 1.4
SLACK = (
    2_000  # lines that do not depend on the text, and what a cut-off prefix of it lacks of its last fragment
)
FRAGMENTS = st.lists(st.sampled_from(GRAMMAR), min_size=1, max_size=3).map(tuple)


def steps(work: Callable[[str], object], text: str) -> int:
    """Lines of Python that `work` runs for `text`. What happens in C is timed by benchmarks/growth.py.

    Garbage of other tests may run their code when it is collected, so none is meanwhile.
    """
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    gc.disable()
    sys.settrace(trace)
    try:
        work(text)
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def test_every_public_function_that_takes_a_text_is_covered() -> None:
    assert public_readers() == set(READERS)


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(READERS))
@settings(max_examples=quick_or_whole(1, 12), suppress_health_check=list(HealthCheck))
@given(fragments=FRAGMENTS, listed=st.booleans())
@example(fragments=("[1†-1",), listed=True)
@example(fragments=("word 15. ",), listed=True)
@example(fragments=("A b. [1] ", "[1] "), listed=True)
@example(fragments=("[](http://a", ")"), listed=False)
def test_steps_grow_no_faster_than_the_text(name: str, fragments: tuple[str, ...], listed: bool) -> None:
    work = READERS[name]
    # Texts of its own, as some of what is read of one is kept for other readers.
    texts = [hostile(fragments, UNIT * times, listed) + name for times in (1, 2, 4, 8)]
    work(texts[0])  # what is loaded or remembered once
    counts = [steps(work, text) for text in texts]
    rate = max(counts[1] / 2, counts[2] / 4)
    assert counts[3] <= 8 * rate * NOISE + SLACK, (fragments, counts)


@pytest.mark.timeout(60)
def test_a_dagger_in_every_number_is_read_in_one_way() -> None:
    for opening in ("[", "【", "［", "\\["):
        assert parse.__wrapped__(f"It grew {opening}1" + "†-1" * 100_000).triplets == ()


def test_facts_are_bounded_in_number_and_the_report_says_so() -> None:
    listed = "".join(f"[{i}] T https://r.example/{i}\n" for i in range(1, 60))
    row = "| " + "a long name of a thing " * 40 + "|" + " b [1-50] |" * 90 + "\n"
    text = f"{row * 300}\n## References\n{listed}"
    found = parse.__wrapped__(text)
    assert len(found.triplets) == MAX_FACTS and not found.complete
    assert sum(len(triplet.fact) for triplet in found.triplets) <= citations.MAX_FACT_CHARS
    assert parse.__wrapped__(f"{row}\n## References\n{listed}").complete


def test_facts_are_bounded_in_length_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(citations, "MAX_FACT_CHARS", 20_000)
    row = "| " + "a long name of a thing " * 40 + "|" + " b [1] |" * 5 + "\n"
    ending = "\n## References\n[1] T https://r.example/1\n"
    found = parse.__wrapped__(row * 20 + ending)
    assert 20_000 <= sum(len(one.fact) for one in found.passages) < 30_000 and not found.complete
    assert parse.__wrapped__(row + ending).complete


def test_marks_are_bounded_in_number_and_the_report_says_so() -> None:
    listed = "\n\n## References\n[1] T https://r.example/1\n"
    found = parse.__wrapped__(f"It grew {'[1]' * 30_000}.{listed}")
    assert MAX_MARKS <= found.marks < 30_000 and not found.complete
    assert parse.__wrapped__(f"It grew {'[1]' * 15_000}.{listed}").complete


def test_references_are_bounded_in_number() -> None:
    text = "It grew [1].\n\n## References\n" + "".join(
        f"[{i}] T https://r.example/{i}\n" for i in range(1, 9_000)
    )
    found = parse.__wrapped__(text)
    assert len(found.references) == MAX_REFERENCES and len(found.triplets) == 1 and not found.complete


@pytest.mark.parametrize("name", ["accounted.addresses", "citation_marks.pieces", "citations.cited"])
@pytest.mark.parametrize("fragment", ["www.a.", "http://a", "\\_"])
def test_a_long_address_takes_little_memory(name: str, fragment: str) -> None:
    text = "http://a" + fragment * (50_000 // len(fragment))
    assert memory(READERS[f"scoring.text.{name}"], text) < AIM_TIMES


@pytest.mark.parametrize("name", ["blocks.lines", "cleaning.without_lists"])
def test_many_fences_take_little_memory(name: str) -> None:
    text = hostile(("```\n",), 200_000, listed=True)
    assert memory(READERS[f"scoring.text.{name}"], text) < AIM_TIMES


def test_an_address_is_read_whole_however_often_it_is_escaped() -> None:
    text = "https://a.example/" + "\\_" * 3_000 + "y"
    whole = "https://a.example/" + "_" * 3_000 + "y"
    assert [*addresses(text).values()] == [whole]
    assert [one.url for one in parse.__wrapped__(f"It grew ({text}).").triplets] == [whole]
