"""Expected scores without a model: which answers have labels, and what their distribution is."""

import asyncio
import math
from collections.abc import Mapping
from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.judges import Answer, Context, Question
from adjudge.judges.expected import distribution, expected_answer, labels_of
from adjudge.judges.schema import schema_of
from tests.rated import Points, Rated


class Word(Answer, frozen=True, kw_only=True):
    items: dict[str, Literal["yes", "no", 'say "maybe"']]


class Say(Question[Word], frozen=True, kw_only=True):
    prompt = "probe"
    answer = Word
    count = 1


class Two(Answer, frozen=True, kw_only=True):
    first: Literal["a", "b"]
    second: Literal["a", "b"]


class Both(Question[Two], frozen=True, kw_only=True):
    prompt = "probe"
    answer = Two


CONTEXT = Context.of(report="text")


def test_number_choice_has_labels_without_the_analysis() -> None:
    question = Rated(context=CONTEXT, values=(0.0, 0.5, 1.0))
    labels = labels_of(schema_of(question, analysis=False))
    assert labels is not None
    assert (labels.before, labels.values, labels.after) == ('{"points":', ("0", "0.5", "1"), "}")
    assert labels.numbers == (0.0, 0.5, 1.0)
    assert labels_of(schema_of(question, analysis=True)) is None


def test_word_choice_in_the_only_item_has_labels() -> None:
    labels = labels_of(schema_of(Say(context=CONTEXT), analysis=False))
    assert labels is not None
    assert labels.before == '{"items":{"c01":"'
    assert labels.values == ("no", r"say \"maybe\"", "yes")
    assert labels.after == '"}}'
    assert labels.numbers is None


def test_two_values_have_no_labels() -> None:
    assert labels_of(schema_of(Both(context=CONTEXT), analysis=False)) is None


def test_labels_differing_in_the_first_token_take_one_request() -> None:
    asked = []

    async def next_token(given: tuple[int, ...], wanted: tuple[int, ...]) -> Mapping[int, float]:
        asked.append((given, wanted))
        return {7: math.log(0.1), 8: math.log(0.3)}

    found = asyncio.run(distribution([(7, 1), (8, 1)], next_token))
    assert found == pytest.approx([0.25, 0.75])
    assert asked == [((), (7, 8))]


def test_labels_with_common_prefixes_ask_once_per_fork() -> None:
    asked = {}

    async def next_token(given: tuple[int, ...], wanted: tuple[int, ...]) -> Mapping[int, float]:
        asked[given] = wanted
        return dict.fromkeys(wanted, -3.0)

    labels = [(1, 2, 9), (1, 2, 3, 9), (1, 2, 4, 9), (5, 9)]
    found = asyncio.run(distribution(labels, next_token))
    assert found == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2])
    assert asked == {(): (1, 5), (1, 2): (9, 3, 4)}


@given(
    st.sets(st.lists(st.integers(0, 3), max_size=4).map(tuple), min_size=1, max_size=12),
    st.integers(0, 2**32),
)
def test_distribution_equals_a_token_by_token_walk(stems: set[tuple[int, ...]], seed: int) -> None:
    labels = [(*stem, 99) for stem in sorted(stems)]

    def log(given: tuple[int, ...], token: int) -> float:
        return (hash((seed, given, token)) % 1000) / 100

    async def next_token(given: tuple[int, ...], wanted: tuple[int, ...]) -> Mapping[int, float]:
        return {token: log(given, token) for token in wanted}

    def walked(label: tuple[int, ...]) -> float:
        probability = 1.0
        for place in range(len(label)):
            begun = label[:place]
            allowed = {other[place] for other in labels if other[:place] == begun}
            total = sum(math.exp(log(begun, token)) for token in allowed)
            probability *= math.exp(log(begun, label[place])) / total
        return probability

    found = asyncio.run(distribution(labels, next_token))
    assert found == pytest.approx([walked(label) for label in labels])
    assert sum(found) == pytest.approx(1)


def test_number_is_the_mean_and_the_distribution_is_kept() -> None:
    question = Rated(context=CONTEXT)
    labels = labels_of(schema_of(question, analysis=False))
    assert labels is not None
    answer, text = expected_answer(question, labels, [0.25, 0.25, 0.5])
    assert answer == Points(points=1.25)
    assert msgspec.json.decode(text) == {"0": 0.25, "1": 0.25, "2": 0.5}


def test_word_is_the_most_probable_label() -> None:
    question = Say(context=CONTEXT)
    labels = labels_of(schema_of(question, analysis=False))
    assert labels is not None
    answer, _ = expected_answer(question, labels, [0.2, 0.6, 0.2])
    assert answer.items == {"c01": 'say "maybe"'}
    answer, _ = expected_answer(question, labels, [0.4, 0.2, 0.4])
    assert answer.items == {"c01": "no"}
