"""A report says the same in every form in which it can be written (`tests/citation_forms.py`)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.scoring.text.accounted import account
from adjudge.scoring.text.citations import cited, parse
from adjudge.scoring.text.cleaning import clean_report
from tests.citation_forms import (
    BARGES,
    FORMS,
    ITEMS,
    MILL,
    NO_CITATIONS,
    NUMBERS_AND_LISTS,
    PAIRS,
    RESIDUE,
    WEIGHTS,
)

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


@pytest.mark.parametrize("form", [name for name in FORMS if "behind the full stop" in name])
def test_links_behind_the_full_stop_are_not_in_the_fact(form: str) -> None:
    facts = {triplet.fact for triplet in parse(FORMS[form]).triplets}
    assert facts == {"The mill grinds oats.", "Barges carry ninety tonnes."}


@pytest.mark.parametrize("items", ITEMS)
def test_items_with_links_are_no_list_of_sources(items: str) -> None:
    text = items.format(mill=MILL, barges=BARGES, weights=WEIGHTS)
    assert pairs(f"# The river\n\n{text}") == PAIRS


def test_pictures_are_no_marks() -> None:
    text = f"{BASIC}\n\n![A mill](mill.png) ![][image1]\n\n[image1]: <data:image/png;base64,AAAA>\n"
    assert parse(text).unresolved == () and parse(text).marks == parse(BASIC).marks
    numbers = FORMS["numbers behind words"]
    assert pairs(f"{numbers}\n[Figure 1] shows a mill, [Figure 7] a bridge.\n") == PAIRS
    assert pairs(f"{numbers}\n![][image1]\n\n[image1]: <data:image/png;base64,AAAA>\n") == PAIRS


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        (f"Sales rose to approx. [3 million tonnes]({MILL})", "Sales rose to approx. [3 million tonnes]"),
        (f"Oats are ground at [the old mill]({MILL}).", "Oats are ground at [the old mill]."),
        (f"Oats are ground there! [Mill 46]({MILL})", "Oats are ground there!"),
        (f"燕麦在那里磨。（来源：[磨坊 46]({MILL})）", "燕麦在那里磨。"),
        (f"| Valley | Oats are ground. [Mill 46]({MILL}) |", "Valley, Oats are ground."),
    ],
)
def test_link_in_a_sentence_is_part_of_it(text: str, fact: str) -> None:
    assert [triplet.fact for triplet in parse(text).triplets] == [fact]


_LINKS = f"- [The old mill on the long river]({MILL})\n- [Book of all the weights there are]({WEIGHTS})\n"


@pytest.mark.parametrize(
    "text",
    [
        f"# The river\n\nThe mill grinds oats.\n\n## Where to look\n\n{_LINKS}",
        f"# The river\n\n## Further reading\n\n{_LINKS}- Ask the miller for the rest of it.\n",
        f"# The river\n\n## Mill URLs (2)\n\n{_LINKS}\n## Forum URLs (2)\n\n{_LINKS}\n## Last\n\nIt rained.\n",
        f"# The river\n\n## Banks\n\nThe mill grinds oats.\n\n{_LINKS}\n## Water\n\nBarges are slow.\n\n{_LINKS}",
        f"# The river\n\n## Banks\n\n- [Mill]({MILL})\n\n## Water\n\n- [Weights]({WEIGHTS})\n- Barges are slow.\n",
    ],
)
def test_lists_of_links_state_nothing(text: str) -> None:
    assert parse(text).triplets == ()


_LAST = f"[A]({MILL}), [B]({WEIGHTS})"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"# R\n\n## A\n\nIt rained.\n\n## B\n\nIt snowed.\n\n**Sources:** {_LAST}\n", 0),
        (f"It rained.\n\nIt snowed.\n\n---\n\n*Sources: {_LAST}*\n", 0),
        (f"It rained.\n\nIt snowed.\nSources: {_LAST}\n", 2),
        (f"It rained. It snowed.\n\nSources: {_LAST}\n", 4),
        (f"It rained.\n\nSources: {_LAST}\n\nIt snowed.\n\nSources: {_LAST}\n", 4),
        (f"It rained.\n\nIt snowed.\n\nSources: {_LAST}\n\nIt was cold.\n", 2),
    ],
)
def test_last_line_of_sources_is_that_of_an_uncited_report(text: str, found: int) -> None:
    assert len(parse(text).triplets) == found


_ROWS = "| Site | {} |\n|---|---|\n| North has rest | {} |\n| South has sails | {} |\n\n{}"


@pytest.mark.parametrize(
    ("header", "cells", "found"),
    [
        ("Boats", ("(1)", "(2)"), []),
        ("Boats", ("②", "①"), []),
        ("Boats", ("1", "2"), []),
        ("Ref", ("1", "2, 1"), ["North", "South", "South"]),
        ("来源", ("(1)", "(2)"), ["North", "South"]),
    ],
)
def test_numbers_in_a_column_are_marks_if_its_title_says_so(
    header: str, cells: tuple[str, str], found: list[str]
) -> None:
    entries = "".join(f"({n}) A. {url}\n" for n, url in ((1, MILL), (2, WEIGHTS)))
    text = _ROWS.format(header, *cells, f"It rained (1).\n\n## References\n\n{entries}")
    said = [triplet.fact for triplet in parse(text).triplets]
    assert [fact.split()[1] for fact in said if "rained" not in fact] == found


@pytest.mark.parametrize(
    ("below", "found"),
    [
        (f"- **Resource**: [A]({MILL})", 2),
        (f"- Resources: <{MILL}>", 2),
        (f"- **Source**: [A]({MILL})", 2),
        ("- **Resources**: Two nurses and a van", 0),
        (f"- **Resources**: Two nurses and a van [A]({MILL})", 1),
    ],
)
def test_item_of_sources_is_that_of_the_paragraph_above(below: str, found: int) -> None:
    assert len(parse(f"It rained. It snowed.\n\n{below}\n\nIt was cold.\n").triplets) == found


@pytest.mark.parametrize(
    ("item", "facts"),
    [
        (f"- **Product URL**: [Oat mill]({MILL}).", ["It rained."]),
        (f"- Forum links: [Oats]({MILL}), <{MILL}>", ["It rained."]),
        (f"- Forum link: the mill grinds oats [Oats]({MILL})", ["Forum link: the mill grinds oats [Oats]"]),
        (f"- The mill grinds oats: [Oats]({MILL})", ["The mill grinds oats: [Oats]"]),
    ],
)
def test_item_that_only_names_an_address_states_nothing(item: str, facts: list[str]) -> None:
    assert [triplet.fact for triplet in parse(f"It rained.\n\n{item}\n\nIt was cold.\n").triplets] == facts


def test_row_says_what_it_is_about_where_its_name_is_a_link() -> None:
    table = f"| # | Mill | Price | Source |\n|---|---|---|---|\n| 1 | [Oat mill]({MILL}) | $3 | [Book]({WEIGHTS}) |\n"
    assert {triplet.fact for triplet in parse(table).triplets} == {"#: 1; Mill: [Oat mill]; Price: $3"}


@pytest.mark.parametrize(
    ("title", "fact"),
    [
        ("Mill URL", "Mill URL: [Oat mill]; Price: $3 a sack"),
        ("Work & link", "Work & link: [Oat mill]; Price: $3 a sack"),
        ("Source URL", "Price: $3 a sack"),
        ("URL", "Price: $3 a sack"),
    ],
)
def test_link_in_a_column_of_names_and_addresses_names_the_row(title: str, fact: str) -> None:
    table = f"| {title} | Price |\n|---|---|\n| [Oat mill]({MILL}) | $3 a sack |\n"
    assert [triplet.fact for triplet in parse(table).triplets] == [fact]


_FIGURES = (
    "A box of pods costs $22.56. 24 K-Cups come in it. The miller sold 30 percent (2021). 2 Sacks were left."
)


@pytest.mark.parametrize("title", ["## References", "Sources:"])
def test_numbers_behind_a_full_stop_are_figures_beside_links(title: str) -> None:
    entries = "".join(f"{n}. https://pods.example/{n}\n" for n in range(1, 30))
    linked = f"The mill grinds oats [Mill]({MILL}). Barges carry ninety tonnes [B]({BARGES}), [W]({WEIGHTS})."
    text = f"# The river\n\n{_FIGURES}\n\n{linked}\n\n{title}\n\n{entries}"
    assert pairs(text) == PAIRS
    assert "24 K-Cups" in clean_report(text)
    numbered = text.replace(linked, "The mill grinds oats.1 Barges carry ninety tonnes.2 It rained.3")
    assert ("The mill grinds oats", "https://pods.example/1") in pairs(numbered)


_TEN = "## Works cited\n\n" + "".join(f"{n}. A work. https://w{n}.example/\n" for n in range(1, 11))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("Oats grow1. Rye does3, too. Wheat (winter)4. It rains (at night5).", [1, 3, 4, 5]),
        ("Oats grow.1 Rye does.3 We used python3. It runs on mp3, web2 and area4.", [1, 3]),
        ("Oats grow [1]. Rye does [3]. Ask the pit[4]. We used python3, web2 and area5.", [1, 3, 4]),
        ("We used python3.", []),
        (
            "Oats grow.1 It takes pits[:, 4].  Rye does.2 Wheat.3 Hops.5 Rain falls.6 It snows.7",
            [1, 2, 3, 5, 6, 7],
        ),
    ],
)
def test_how_numbers_stand_in_a_report_decides_which_are_marks(body: str, found: list[int]) -> None:
    assert [triplet.ref_idx for triplet in parse(f"# Fields\n\n{body}\n\n{_TEN}").triplets] == found


def _listed(*labels: str) -> str:
    """A list of the mill and the weights."""
    return "## References\n\n" + "".join(
        f"{label} A work. {url}\n" for label, url in zip(labels, (MILL, WEIGHTS), strict=True)
    )


_FRONT = "---\ntitle: Fields of the river\nsources:\n  - {url}\ntags: [oats, rye]\n---\n\n"


@pytest.mark.parametrize(
    "front", [_FRONT, _FRONT.replace("---", "+++").replace(": ", " = "), "---\nurl: {url}\n...\n"]
)
def test_fields_in_front_of_a_report_state_nothing(front: str) -> None:
    text = front.format(url=WEIGHTS) + BASIC
    assert pairs(text) == PAIRS
    assert WEIGHTS not in clean_report(text) and "The mill grinds oats." in clean_report(text)
    assert parse("---\n\nBarges carry ninety tonnes [1].\n\n---\n\n" + BASIC).marks == parse(BASIC).marks + 1


_UNUSED = (
    "- 🏠 [Site]({url})",
    "- [Works (all)]({url}_(all)) — comparison",
    "- [[A work]({url})] [[Another]({url}/2)]",
    "### A work\n\n> **Source:** [Works]({url}) @ [`9b5861d`]({url}/commit)",
    "### [A work]({url})",
    "**[A work]({url})**\n\n- [Part]({url}/part)",
)


@pytest.mark.parametrize("said", _UNUSED)
def test_source_of_which_nothing_is_stated_is_listed(said: str) -> None:
    text = f"# The river\n\n## Mills\n\nIt rained.\n\n## More\n\n{said.format(url=MILL)}\n\n## Last\n\nIt snowed.\n"
    found = account(text)
    assert not found.pairs and len(found.urls_unused) == text.count("https://")
    assert {entry.rpartition("] ")[2] for entry in found.entries_unused} == set(found.urls_unused)


@pytest.mark.parametrize("sentence", NO_CITATIONS)
def test_what_is_no_citation_gives_no_pair(sentence: str) -> None:
    text = BASIC.replace("## References", f"## Methods\n\n{sentence}. It was so.\n\n## References")
    assert pairs(text) == PAIRS


_LAWS = "# Rivers\n\nBy Article 3(2) and § 4(1), no mill may stand (1).\n\n## References\n\n"


def test_paragraphs_of_laws_are_no_marks() -> None:
    found = parse(f"{_LAWS}(1) A law. {MILL}\n(2) Another. {WEIGHTS}\n").triplets
    assert [(one.fact, one.url) for one in found] == [
        ("By Article 3(2) and § 4(1), no mill may stand.", MILL)
    ]


@pytest.mark.parametrize("raised", ["¹", "<sup>1</sup>", "^1"])
def test_raised_two_is_a_mark_but_behind_a_number_or_term(raised: str) -> None:
    two = raised.translate(str.maketrans("1¹", "2²"))
    text = "The mill grinds oats{}. Barges carry ninety tonnes{}.\n\n" + _listed("1.", "2.")
    assert {url for _, url in pairs(text.format(raised, two))} == {MILL, WEIGHTS}
    assert {url for _, url in pairs(text.format("", two))} == ({WEIGHTS} if "^" not in raised else set())
    bracketed = "The mill grinds oats [1]. MEGA{} counts barges.\n\n" + _listed("1.", "2.")
    assert {url for _, url in pairs(bracketed.format(two))} == {MILL}
    powers = "The mill grinds 40{} oats. Barges carry (9 + x){} tonnes.\n\n" + _listed("1.", "2.")
    assert pairs(powers.format(two, two)) == set()


@pytest.mark.parametrize("slot", ["[post-id]", "{post_id}", "{post_id}/more", "[post-id]/more"])
@pytest.mark.parametrize("form", ["It rained, says {}.", "It rained, says [one]({}).", "| It rained | {} |"])
def test_address_holds_what_is_to_be_filled_in(slot: str, form: str) -> None:
    url = f"https://forum.example/t/{slot}"
    found = account(form.format(url))
    assert [one.url for one in found.pairs] == [url] and found.urls_unused == ()


@pytest.mark.parametrize(
    "words", ["↗", "¹⁷", "[3]", "https://mill.example/oats", "![](https://a.example/b.png)"]
)
def test_words_of_a_link_that_say_nothing_are_not_in_the_fact(words: str) -> None:
    found = parse(f"The mill grinds oats [{words}]({MILL}). It rained.\n").triplets
    assert [(one.fact, one.url) for one in found] == [("The mill grinds oats.", MILL)]


def test_pictures_that_are_links_alone_cite_nothing() -> None:
    badge = "[![Oats](https://badges.example/oats.svg)]({})"
    text = f"# The river\n\nIt rained.\n\n{badge.format(MILL)}\n{badge.format(WEIGHTS)}\n\nIt snowed.\n"
    assert parse(text).triplets == ()


@pytest.mark.parametrize(
    ("sentence", "fact"),
    [
        ("Oats grow there [{}], [{}], [{}].", "Oats grow there."),
        ("Oats grow there ({}, in May) and rye.", "Oats grow there (in May) and rye."),
        ("Oats grow there (e.g., {}).", "Oats grow there."),
        ("Oats are kept in `.mill/oats` ({}).", "Oats are kept in .mill/oats."),
        ("Oat mill - {} - three pounds a sack", "Oat mill - three pounds a sack"),
    ],
)
def test_marks_leave_nothing_of_themselves_in_the_fact(sentence: str, fact: str) -> None:
    text = sentence.format(*(f"https://w{n}.example/" for n in range(3)))
    assert {one.fact for one in parse(text).triplets} == {fact}


def test_name_of_a_forum_begins_a_sentence() -> None:
    text = f"A miller ({MILL}) counted sacks. r/bargees ({BARGES}) counted boats.\n"
    assert pairs(text) == {("A miller counted sacks.", MILL), ("r/bargees counted boats.", BARGES)}


_PARTS = (
    "# Banks\n\nIt rained [1]. It snowed [2]. It froze [3].\n\n## References\n\n"
    "[1] A https://w1.example/\n[2] B https://w2.example/\n[3] C https://w3.example/\n\n"
    "# Water\n\nFish swim [1]. Frogs hop [2]. Birds fly [3].\n\n## References used in this section\n\n{}"
)


def test_marks_above_a_list_without_addresses_lead_nowhere() -> None:
    found = parse(_PARTS.format("[1] Miller on fish.\n[2] What is a frog?\n[3] Book of birds.\n"))
    assert [one.fact for one in found.triplets] == ["It rained.", "It snowed.", "It froze."]
    assert found.unresolved == ("[1]", "[2]", "[3]")


_CITING = (
    f"# The river\n\nThe mill grinds oats [A]({MILL}).\n\n"
    f"Barges carry ninety tonnes [B]({BARGES}) [C]({WEIGHTS}).\n\n"
)


@pytest.mark.parametrize(
    "end",
    [
        f"It rained.\n\n**Sources:** [A]({MILL}), [B]({BARGES})\n",
        f"It rained.\n\n---\n\n**References**:\n- Register: {MILL}\n- Ledger: {BARGES}\n\n---\n\n*Made today*\n",
        f"## More URLs\n\n12. {MILL}\n13. {BARGES}\n\n---\n*It took a day. End of report.*\n",
    ],
)
def test_sources_at_the_end_are_those_of_the_report(end: str) -> None:
    assert pairs(_CITING + end) == PAIRS


@pytest.mark.parametrize(
    "items",
    [
        "- Oats: {mill} (they rest in it)\n- Barges: {barges}\n",
        "- **Oat register**: [mill.example/oats]({mill})\n- **Barge ledger**: [barges.example]({barges})\n",
        "- **Main link:** `{mill}`\n",
    ],
)
def test_items_that_are_names_and_addresses_cite_nothing(items: str) -> None:
    text = f"# The river\n\n## Where to look\n\n{items.format(mill=MILL, barges=BARGES)}\n## Last\n\nIt snowed.\n"
    assert [one.url for one in parse(text).triplets if "rest in it" not in one.fact] == []
    assert BARGES not in {one.url for one in parse(text).triplets}


def test_title_of_a_note_is_no_part_of_what_it_states() -> None:
    text = (
        f"> [!note] Mind the mill\n> It grinds oats ([A]({MILL})).\n\n> [!TIP]\n> It rests [B]({WEIGHTS}).\n"
    )
    assert [one.fact for one in parse(text).triplets] == ["It grinds oats ([A]).", "It rests [B]."]


@pytest.mark.parametrize(
    ("more", "cites"),
    [("", True), (f"See [A]({WEIGHTS}).", False), (f"## References\n\n- {MILL}\n- {WEIGHTS}\n", True)],
)
def test_address_in_code_cites_where_no_other_stands(more: str, cites: bool) -> None:
    found = {one.url for one in parse(f"The mill sends its oats to `{MILL}` by day.\n\n{more}\n").triplets}
    assert (MILL in found) is cites


@pytest.mark.parametrize(
    "form", ["It rests (`{}`).", "It rests.\n\nSource: `{}`", "It rests.\n\n**来源：** `{}`"]
)
def test_address_in_code_cites_in_parentheses_and_behind_a_name(form: str) -> None:
    text = f"{form.format(MILL)}\n\nBarges carry ninety tonnes [Barges]({BARGES}).\n"
    assert {one.url for one in parse(text).triplets} == {MILL, BARGES}


def test_numbers_behind_full_stops_are_marks_beside_others() -> None:
    body = "Oats grow.1 Rye grows too.2 Hops climb.3 It rains.4\n\nsow() \\# as it grows \\[5, 6\\]\n\nSee pits [7].\n"
    text = f"# Fields\n\n{body}\n{_TEN}"
    assert {triplet.ref_idx for triplet in parse(text).triplets} == {1, 2, 3, 4, 5, 6, 7}


@pytest.mark.parametrize("copied", RESIDUE)
def test_traces_of_chat_pages_state_nothing(copied: str) -> None:
    assert clean_report(copied) == "The mill grinds oats."
    assert [(one.fact, one.sources) for one in parse(copied).passages] == [("The mill grinds oats.", ())]


def test_hidden_element_that_nothing_closes_hides_nothing() -> None:
    assert clean_report('It rained. <span style="display:none">It snowed.') != "It rained."
    assert "code" in clean_report("`<!-- code -->` and text -->")


def test_last_line_with_one_source_is_of_what_stands_above() -> None:
    above = "# The river\n\nBarges carry ninety tonnes.\n\nThe mill grinds oats.\n\n"
    assert pairs(f"{above}Source: {MILL}\n") == {("The mill grinds oats", MILL)}
    assert pairs(f"{above}Sources: {MILL}, {BARGES}\n") == set()


@given(
    st.sampled_from(sorted(FORMS)),
    st.lists(st.sampled_from(["It rained.", "## More", "- A dry item", "1. First"])),
)
def test_prose_without_sources_changes_nothing(form: str, added: list[str]) -> None:
    top, blank, rest = FORMS[form].partition("\n\n")
    text = "\n\n".join([*added, "The report begins.", top]) + blank + rest
    assert pairs(text) == PAIRS


# --- reports put together at random

PLACES = (
    "Aldermoor",
    "Brackwell",
    "Cindervale",
    "Dunsgate",
    "Elmholt",
    "Farrowby",
    "Grimstead",
    "Hollinworth",
)
# What a statement and the sources behind "@" look like, each in a chapter of its own.
DRAWN = (
    "{said} @[A work]({url})|, @.",
    "{said}. @([A work]({url}))| @",
    "{said}.\n\n*Source: @[A work]({url})|; @*",
    "{said}.\nSources:\n@- [A work]({url})|\n@",
    "{said}.\nSource: @{url}|, @",
    "- {said} @({url})|, @",
    "1. {said}.\n@   - Source: [A work]({url})|\n@",
    "- **Topic**\n  - {said}.\n@  - Source: {url}|\n@",
    "According to @[A work]({url})| and @:\n\n- {said}.",
    "The survey (@{url}|; @) found the following:\n\n- {said} as far as anybody knows who was there.",
    "### Quelle: @[Ein Werk]({url})| / @\n\n{said}.",
    "### A work\n\n@Link: {url}|  \n@\n\n* {said}.",
    "**A work**\n@- URL: {url}|\n@\n- {said}.",
    "| Finding | Quelle |\n|---|---|\n| {said} | @[A work]({url})|, @ |",
    "| Area | Finding |\n|---|---|\n| River | {said} |\n\nSource: @[A work]({url})|, @",
    "> {said} @<{url}>| @.",
    "{said} @<a href='{url}'>so</a>| @.",
)


@st.composite
def drawn_reports(draw: st.DrawFn) -> tuple[str, set[tuple[str, str]]]:
    """A report and its pairs of a place that a statement names and a URL that it cites."""
    chapters, wanted = ["# The river"], set[tuple[str, str]]()
    for number, place in enumerate(draw(st.permutations(PLACES))[: draw(st.integers(2, 6))]):
        said = f"{place} keeps {number + 3} boats"
        urls = [f"https://w{number}-{n}.example/a_{n}?b={n}" for n in range(draw(st.integers(1, 3)))]
        form = draw(st.sampled_from(DRAWN))
        chapters.append(f"## Chapter {number}")
        if draw(st.booleans()):
            chapters.append("Nobody counted the swans.")
        chapters.append(_assembled(form, said, urls))
        if draw(st.booleans()):
            chapters.append("## Aside\n\n- Nobody counted the herons either.")
        wanted |= {(place, url) for url in urls}
    return "\n\n".join(chapters) + "\n", wanted


def _assembled(form: str, said: str, urls: list[str]) -> str:
    before, middle, after = form.split("@")
    each, _, between = middle.rpartition("|")
    return (
        before.format(said=said)
        + between.join(each.format(url=url) for url in urls)
        + after.format(said=said)
    )


@given(drawn_reports())
def test_report_put_together_at_random_gives_its_pairs(made: tuple[str, set[tuple[str, str]]]) -> None:
    text, wanted = made
    assert cited(text).triplets == parse(text).triplets
    found = {(triplet.fact, triplet.url) for triplet in parse(text).triplets}
    named = {(next((place for place in PLACES if place in fact), fact), url) for fact, url in found}
    assert named == wanted
