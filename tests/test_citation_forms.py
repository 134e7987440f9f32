"""Every form of citation that FACT knows, from made samples; on real reports, a count that shares no code with ours."""

import json
import re
from collections.abc import Iterator

import msgspec
import pytest

from adjudge.judges import LexicalJudge
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.deepresearch_bench.fact_questions import extract
from adjudge.scoring.text.accounted import account
from adjudge.scoring.text.citations import Triplet, cited, parse, url_key
from tests.shared_data import shared
from tests.tools import DirectTools

LISTED = {5: "https://five.example/a", 15: "https://fifteen.example/b", 46: "https://last.example/c"}
LIST = "\n".join(f"{number}. A work, {url}" for number, url in LISTED.items()) + "\n"
FACT = "The tram carries many riders"
ZH = "电车每天运送四万名乘客"

MARKS = {
    "number after a space": (f"{FACT} 15.", FACT, [15]),
    "number after a space, zh": (f"{ZH} 15。", ZH, [15]),
    "bracket": (f"{FACT}[15].", FACT, [15]),
    "two in brackets": (f"{FACT}[5][15].", FACT, [5, 15]),
    "lines": (f"{FACT}[15†L10][5L23].", FACT, [15, 5]),
    "summary": (f"{FACT}[15†summary][5summary].", FACT, [15, 5]),
    "corner brackets": (f"{ZH}【15†L10-L20】。", ZH, [15]),
    "behind the full stop": (f"{FACT}.46 It runs at night.", FACT, [46]),
    "behind the full stop, at the end": (f"{FACT}.46", FACT, [46]),
    "behind a percentage": ("Ridership rose by 12%.46 It runs at night.", "Ridership rose by 12%", [46]),
    "behind a year": ("Ridership rose in 2020.46 It runs at night.", "Ridership rose in 2020", [46]),
    "behind the full stop, zh": (f"{ZH}。46它在夜间运行。", ZH, [46]),
    "raised": (f"{FACT}.⁴⁶ It runs at night.", FACT, [46]),
    "raised, HTML": (f"{FACT}.<sup>46</sup> It runs at night.", FACT, [46]),
    "raised, zh": (f"{ZH}。⁴⁶它在夜间运行。", ZH, [46]),
    "footnote": (f"{FACT}.[^15]", FACT, [15]),
}
TITLES = (
    """
References; Reference list; Works cited; Sources; Bibliography; Literature cited; Notes and references; Further reading;
Data sources; Annotated bibliography; Appendix A: References; Sources & Citations; Selected References (with links);
引用的著作; 参考文献; 參考文獻; 參考資料; 引用文獻; 資料來源; 数据来源; 參考書目; 参考资料; 引用来源; 注释; 註釋; 出處;
相关链接; 附录：参考文献; 本文的參考資料
""".strip()
    .replace("\n", " ")
    .split("; ")
)
SHAPES = ("## {}", "#### **{}**", "**{}**", "**{}:**", "{}", "### 6. {}")
TITLED = {
    "bullets below a title in a list": "- **A study** ([link](URL))\n  - Riders rose.\n  - Costs fell.\n",
    "below a numbered title": "1. **A study** (URL)\n   - Riders rose.\n   - Costs fell.\n",
    "bullets beside a numbered title": "1. **A study** (URL)\n- Riders rose.\n- Costs fell.\n",
    "below a line": "**A study** ([link](URL))\n- Riders rose.\n- Costs fell.\n",
    "below a line and a blank": "**[A study](URL)**\n\n* Riders rose.\n* Costs fell.\n",
    "below a heading": "### A study ([link](URL))\n\n- Riders rose.\n- Costs fell.\n",
    "below a title with a number": "**A study** [15]\n- Riders rose.\n- Costs fell.\n\n## Sources\n15. A study, URL\n",
}


def triplets(text: str) -> list[tuple[str, int, str]]:
    return [(one.fact.rstrip(".。"), one.ref_idx, one.url) for one in parse(text).triplets]


@pytest.mark.parametrize("form", MARKS)
def test_citation_form_gives_fact_and_source(form: str) -> None:
    text, fact, numbers = MARKS[form]
    assert triplets(f"{text}\n\n## References\n{LIST}") == [(fact, n, LISTED[n]) for n in numbers]


@pytest.mark.parametrize("title", TITLES)
def test_entries_below_a_usual_heading_are_no_facts(title: str) -> None:
    for shape in SHAPES:
        text = f"{FACT}.[15] It runs at night.\n\n{shape.format(title)}\n\n{LIST}"
        found = parse(text)
        assert [(one.fact, one.url) for one in found.triplets] == [(f"{FACT}.", LISTED[15])], shape
        assert [one.fact for one in found.passages] == [f"{FACT}.", "It runs at night."], shape


@pytest.mark.parametrize(
    "title", ["Sources of growth", "Source criticism", "增长的来源", "Notes on data sources"]
)
def test_section_about_sources_is_not_a_list(title: str) -> None:
    text = f"## {title}\n\n1. {FACT} [15].\n2. Costs fell by 5 percent [5].\n\n## References\n{LIST}"
    assert [url for _, _, url in triplets(text)] == [LISTED[15], LISTED[5]]


@pytest.mark.parametrize("form", TITLED)
def test_bullets_below_a_titled_source_are_the_facts(form: str) -> None:
    url = "https://study.example/x"
    found = parse(TITLED[form].replace("URL", url))
    number = 15 if "[15]" in TITLED[form] else 0
    assert [(one.fact, one.ref_idx, one.url) for one in found.triplets] == [
        ("A study: Riders rose.", number, url),
        ("A study: Costs fell.", number, url),
    ]
    assert len(found.passages) == 2


def test_titled_source_ends_where_its_bullets_end() -> None:
    text = (
        "1. **First study** (https://a.example)\n   - Riders rose.\n   - Costs fell [B](https://b.example).\n"
        "2. **Second study** (https://c.example)\n   - Noise fell.\n3. Nothing else is cited.\n\n"
        "Prose follows.\n\n- A bullet of its own.\n\n**All tracks are new** (https://d.example). They last."
    )
    assert [(one.fact, one.url) for one in parse(text).triplets] == [
        ("First study: Riders rose.", "https://a.example"),
        ("First study: Costs fell [B].", "https://b.example"),
        ("Second study: Noise fell.", "https://c.example"),
        ("All tracks are new.", "https://d.example"),
    ]


def test_title_without_bullets_stays_a_fact() -> None:
    text = "- **Ridership doubled in ten years** ([link](https://a.example))\n- **It fell again** ([x](https://b.example))\n"
    assert [url for _, _, url in triplets(text)] == ["https://a.example", "https://b.example"]


@pytest.mark.parametrize(
    "text",
    [
        "See fig.46 The rest follows.",
        "It cost 3.46 M euros.",
        "Version v2.46 Beta is out.",
        "电车每天运送四万名乘客。5G 网络已建成。15GW 也有。",
    ],
)
def test_number_behind_a_point_is_not_always_a_mark(text: str) -> None:
    assert triplets(f"{text}\n\n## References\n{LIST}") == []


def test_entry_is_read_at_its_address_rather_than_its_name() -> None:
    text = "It is so [1].\n\n## Sources\n[1] arXiv:2407.17915v4, A work. https://arxiv.org/pdf/2407.17915\n"
    assert [url for _, _, url in triplets(text)] == ["https://arxiv.org/pdf/2407.17915"]


async def test_both_extractions_find_every_form() -> None:
    """Prints the table of forms and what is found of each, by marks alone and with the embedded judge."""
    study = "https://study.example/x"
    samples = {
        form: (f"{text}\n\n## References\n{LIST}", [LISTED[n] for n in numbers])
        for form, (text, _, numbers) in MARKS.items()
    }
    samples |= {form: (text.replace("URL", study), [study, study]) for form, text in TITLED.items()}
    samples |= {
        "link": (f"{FACT} ([x]({study}#:~:text=many)).", [study]),
        "bare URL": (f"{FACT}, {study}.", [study]),
    }
    samples["only a list"] = (f"{FACT}.\n\n## References\n{LIST}", [])
    rows = []
    for form, (text, wanted) in samples.items():
        case = Case(task=Task(id="1", prompt="?"), report=Report(task_id="1", system="s", text=text))
        marked = parse(text)
        judged = await extract(case, marked, (), DirectTools(LexicalJudge()))
        assert isinstance(judged, tuple)
        rows.append(
            (form, len(wanted), *([one.url for one in each] == wanted for each in (marked.triplets, judged)))
        )
    print(
        "\n".join(
            f"{form:34} wanted {wanted}, marks {by_marks}, judge {by_judge}"
            for form, wanted, by_marks, by_judge in rows
        )
    )
    assert all(by_marks and by_judge for _, _, by_marks, by_judge in rows)


@pytest.mark.parametrize("sentences", [40, 900])
async def test_sources_beyond_300_are_found(sentences: int) -> None:
    """Every section is shown all the sources that it names, in a short report and in one of several sections."""
    each = 450 // sentences + 1
    body, entries, number = [], [], 0
    for place in range(sentences):
        marks = "".join(f"[{number + step}]" for step in range(1, each + 1))
        body.append(
            f"Fact number {place} is stated here at some length, so that the report gets long {marks}."
        )
        entries += [f"[{n}] Work {n}, https://w{n}.example/" for n in range(number + 1, number + each + 1)]
        number += each
    text = "\n".join([*body, "", "## References", *entries])
    report = Report(task_id="1", system="s", text=text)
    case = Case(task=Task(id="1", prompt="?"), report=report)
    tools = DirectTools(LexicalJudge())
    found = await extract(case, parse(text), (), tools)
    assert isinstance(found, tuple)
    assert {one.url for one in found} == {f"https://w{n}.example/" for n in range(1, number + 1)}
    assert len(tools.questions) > 1
    assert all(question.context["sources"].count("\n") < 300 for question in tools.questions)


async def test_list_that_spans_sections_gives_no_facts() -> None:
    """A part of a long list has lost its heading; its numbered entries would pass for statements."""
    body = "\n".join(f"Fact number {place} stands here [{place}]." for place in range(1, 11))
    entries = "\n".join(
        f"{n}. Title of a work about the trams of city {n}, https://w{n}.example/" for n in range(1, 2_001)
    )
    text = f"{body}\n\n## References\n\n{entries}\n"
    case = Case(task=Task(id="1", prompt="?"), report=Report(task_id="1", system="s", text=text))
    found = await extract(case, parse(text), (), DirectTools(LexicalJudge()))
    assert isinstance(found, tuple)
    assert [one.url for one in found] == [f"https://w{n}.example/" for n in range(1, 11)]


# --- real reports, counted by other means

SYSTEMS = ("claude4-sonnet", "gpt-4.1", "gpt-5")
_TITLE = re.compile(
    r"\s*(?:#{1,6}\s*)?(?:\*\*)?[\d.、一二三四五六七八九十\s]*.{0,12}"
    r"(?:sources?|references?|works cited|参考|来源|文献|资料)"
    r"\s*(?:[(（].*[)）])?(?:\*\*)?\s*[:：]?\s*",
    re.IGNORECASE,
)
_URL = re.compile(r"https?://[^\s<>\"】，。；、）]+")
_NUMBERS = re.compile(r"[\[【](\d+(?:\s*[,，、;–-]\s*\d+)*)[\]】](?!\()")


def urls(text: str) -> Iterator[str]:
    """Addresses as they stand, each cut where a bracket closes that it did not open."""
    for match in _URL.finditer(text):
        url, depth = match[0].partition("](")[0], 0
        for place, char in enumerate(url):
            depth += (char == "(") - (char == ")")
            if depth < 0:
                url = url[:place]
                break
        yield url.rstrip(".,;:*!?_'\"")


def counted(text: str) -> tuple[set[str], set[str]]:
    """What the body of a report cites, and what stands only in the list at its end."""
    rows = text.split("\n")
    end = max((place for place, row in enumerate(rows) if _TITLE.fullmatch(row)), default=len(rows))
    body, listed = "\n".join(rows[:end]), rows[end:]
    numbers = {}
    for row in listed:
        number, found = re.match(r"\s*[-*]?\s*\[?(\d+)", row), next(urls(row), None)
        if number and found:
            numbers[int(number[1])] = found
    cited = set(urls(body))
    for match in _NUMBERS.finditer(body):
        for part in re.split(r"[,，、;]", match[1]):
            ends = [int(number) for number in re.findall(r"\d+", part)]
            cited |= {numbers[n] for n in range(ends[0], ends[-1] + 1) if n in numbers}
    return cited, {found for row in listed for found in urls(row)} - cited


def real() -> Iterator[str]:
    for system in SYSTEMS:
        rows = shared(f"golden/reports/langchain_{system}.jsonl").read_text(encoding="utf-8").splitlines()
        yield from (json.loads(row)["article"] for row in rows)


def test_what_is_cited_of_real_reports_is_what_is_parsed() -> None:
    total = 0
    for text in real():
        found = parse(text)
        sourced = tuple(passage for passage in found.passages if passage.sources)
        assert cited(text) == msgspec.structs.replace(found, passages=sourced)
        total += len(sourced)
    assert total > 800


def compared(found: list[tuple[tuple[Triplet, ...], str]]) -> tuple[int, int, set[str]]:
    """How many URLs are cited by the other count, how many of them are found, and which are found in lists alone."""
    wanted, met, only = 0, 0, set[str]()
    for triplets_of, text in found:
        cited, listed = ({url_key(url) for url in urls_of} for urls_of in counted(text))
        keys = {url_key(one.url) for one in triplets_of}
        wanted, met = wanted + len(cited), met + len(cited & keys)
        only |= keys & (listed - cited)
    return wanted, met, only


def test_real_reports_give_the_urls_that_another_count_finds() -> None:
    wanted, met, only = compared([(parse(text).triplets, text) for text in real()])
    print(f"{met} of {wanted} cited URLs found; {len(only)} that only a list has")
    assert wanted > 800
    assert met >= 0.99 * wanted
    assert only == set()


async def test_extraction_keeps_the_urls_of_real_reports() -> None:
    """The whole path of the judged form, with the embedded judge, which reads the marks of one sentence at a time."""
    found = []
    for text in real():
        case = Case(task=Task(id="1", prompt="?"), report=Report(task_id="1", system="s", text=text))
        unused = account(text).urls_unused
        triplets_of = await extract(case, parse(text), unused, DirectTools(LexicalJudge()))
        assert isinstance(triplets_of, tuple)
        found.append((triplets_of, text))
    wanted, met, only = compared(found)
    print(f"{met} of {wanted} cited URLs found; {len(only)} that only a list has")
    assert met >= 0.99 * wanted and only == set()
