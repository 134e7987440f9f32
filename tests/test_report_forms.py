"""A report says the same in every form in which it can be written (`tests/citation_forms.py`)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.scoring.text.citations import cited, parse
from adjudge.scoring.text.cleaning import clean_report
from tests.citation_forms import FORMS, NO_CITATIONS, NUMBERS_AND_LISTS, PAIRS, RESIDUE

STATEMENTS = ("The mill grinds oats", "Barges carry ninety tonnes", "No bridge crosses the river")
BASIC = NUMBERS_AND_LISTS["numbers in brackets"]


def pairs(text: str) -> set[tuple[str, str]]:
    """(statement, URL), and (the whole fact, URL) for a fact that is none of the statements."""
    assert cited(text).triplets == parse(text).triplets
    return {
        (next((one for one in STATEMENTS if one in triplet.fact), triplet.fact), triplet.url)
        for triplet in parse(text).triplets
    }


@pytest.mark.parametrize("form", FORMS)
def test_form_gives_the_pairs_of_the_report(form: str) -> None:
    assert pairs(FORMS[form]) == PAIRS


@pytest.mark.parametrize("form", FORMS)
def test_cleaned_form_is_the_report_without_its_sources(form: str) -> None:
    cleaned = clean_report(FORMS[form])
    assert all(statement in cleaned for statement in STATEMENTS)
    assert "example" not in cleaned and "ledger" not in cleaned


@pytest.mark.parametrize("sentence", NO_CITATIONS)
def test_what_is_no_citation_gives_no_pair(sentence: str) -> None:
    text = BASIC.replace("## References", f"## Methods\n\n{sentence}. It was so.\n\n## References")
    assert pairs(text) == PAIRS


@pytest.mark.parametrize("copied", RESIDUE)
def test_traces_of_chat_pages_state_nothing(copied: str) -> None:
    assert clean_report(copied) == "The mill grinds oats."
    assert [(one.fact, one.sources) for one in parse(copied).passages] == [("The mill grinds oats.", ())]


def test_hidden_element_that_nothing_closes_hides_nothing() -> None:
    assert clean_report('It rained. <span style="display:none">It snowed.') != "It rained."
    assert "code" in clean_report("`<!-- code -->` and text -->")


@given(
    st.sampled_from(sorted(FORMS)),
    st.lists(st.sampled_from(["It rained.", "## More", "- A dry item", "1. First"])),
)
def test_prose_without_sources_changes_nothing(form: str, added: list[str]) -> None:
    top, blank, rest = FORMS[form].partition("\n\n")
    text = "\n\n".join([*added, "The report begins.", top]) + blank + rest
    assert pairs(text) == PAIRS
