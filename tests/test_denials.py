"""The lexical judge sees a plain denial and another year in a statement that repeats the words of its page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.trial.material import negated
from adjudge.judges.lexical import passages
from tests.planted import made_material

PAGE = (
    "The harbour of Velmar was opened in 1912 by the town council. It handles 4,310 containers in a month. "
    "The old ferry does not run in winter. 该市的地铁有12条线路。The bridge is open and not only pedestrians use it."
)


@pytest.mark.parametrize(
    ("statement", "verdict"),
    [
        ("The harbour of Velmar was opened in 1912 by the town council.", "supported"),
        ("The harbour of Velmar was opened in 1958 by the town council.", "unsupported"),
        ("The harbour of Velmar was not opened in 1912 by the town council.", "unsupported"),
        ("It handles 4,310 containers in a month.", "supported"),
        ("It doesn't handle 4,310 containers in a month.", "unsupported"),
        ("The old ferry does not run in winter.", "supported"),
        ("The old ferry runs in winter.", "unsupported"),
        ("It is not true that the old ferry does not run in winter.", "unsupported"),
        ("The bridge is open and not only pedestrians use it.", "supported"),
        ("该市的地铁有12条线路。", "supported"),
        ("并非该市的地铁有12条线路。", "unsupported"),
        (
            "A report of 2024 says that the harbour of Velmar was opened by the town council in 1912.",
            "supported",
        ),
    ],
)
def test_denials_and_years_decide_where_words_are_the_same(statement: str, verdict: str) -> None:
    assert passages(PAGE).support(statement).partly == verdict


@given(st.integers(0, 10**6))
def test_statements_of_a_page_are_never_denied_by_it(seed: int) -> None:
    material = made_material(seed)[0]
    page = passages(material.report)
    for one in material.statements:
        assert page.support(one.text).partly == "supported"


def test_most_denied_statements_are_seen() -> None:
    """On made reports, which nothing was fitted to."""
    found = [
        passages(own.report).support(negated(one.text, "en")).partly
        for seed in range(20)
        for own in made_material(seed)
        for one in own.statements
    ]
    assert found.count("unsupported") > 0.75 * len(found) > 500
