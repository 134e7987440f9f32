"""A report put together at random says exactly its pairs of a statement and a page, as Markdown, HTML and Word.

Chapters in some languages hold paragraphs, nested lists and tables; statements cite by links, bare addresses, numbers
in brackets, raised numbers or footnotes, whose lists stand at the end of the report or of each chapter.
"""

import html
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import docx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.engine.formats.input_files import InputFile
from adjudge.engine.formats.report_documents import read_report
from adjudge.scoring.text.citations import cited, parse
from tests.word_files import add_link

KEYS = (
    "Aldermoor Brackwell Cindervale Dunsgate Elmholt Farrowby Grimstead Hollinworth Ilmere Joyfield".split()
)


class Language(NamedTuple):
    """How a language says something of a place, names chapters, sources and columns, and ends a sentence."""

    said: str
    chapter: str
    sources: str
    columns: tuple[str, str, str]
    stop: str
    space: str


LANGUAGES = (
    Language("{} keeps {} boats", "Chapter", "References", ("Area", "Finding", "Source"), ".", " "),
    Language("{} hat {} Boote im Hafen", "Kapitel", "Quellen", ("Ort", "Befund", "Quelle"), ".", " "),
    Language("{} tiene {} barcos", "Capítulo", "Fuentes", ("Zona", "Hallazgo", "Fuente"), ".", " "),
    Language("У {} есть {} лодки", "Глава", "Источники", ("Место", "Вывод", "Источник"), ".", " "),
    Language("{}的港口里有{}艘船", "章", "参考文献", ("地区", "结论", "来源"), "。", ""),
)
STYLES = ("links", "bare", "numbers", "numbers behind the stop", "raised", "footnotes")


class Statement(NamedTuple):
    """What is said of the place `key`, and the numbers of its sources."""

    key: str
    said: str
    sources: tuple[int, ...]


class Block(NamedTuple):
    """A paragraph, a list or a table of statements; `depths` are those of the items."""

    kind: str
    statements: tuple[Statement, ...]
    depths: tuple[int, ...]


class Drawn(NamedTuple):
    """A report before it is written."""

    language: Language
    style: str
    by_chapter: bool
    escapes: bool
    in_cells: bool
    chapters: tuple[tuple[Block, ...], ...]

    @property
    def pairs(self) -> set[tuple[str, str]]:
        """The pairs of a key and an address that it says."""
        said = [one for chapter in self.chapters for block in chapter for one in block.statements]
        return {(one.key, address(n)) for one in said for n in one.sources}


def address(number: int) -> str:
    return f"https://w{number}.example/a_{number}/b_c?x={number}&y_z=2"


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    language = draw(st.sampled_from(LANGUAGES))
    keys = list(draw(st.permutations(KEYS)))
    chapters: list[tuple[Block, ...]] = []
    while keys and len(chapters) < 4:
        blocks: list[Block] = []
        for kind in draw(st.lists(st.sampled_from(["paragraph", "list", "table"]), min_size=1, max_size=2)):
            taken = [keys.pop() for _ in range(min(len(keys), draw(st.integers(1, 3))))]
            statements = tuple(
                Statement(
                    key,
                    language.said.format(key, draw(st.integers(2, 90))),
                    tuple(draw(st.lists(st.integers(1, 9), max_size=2, unique=True))),
                )
                for key in taken
            )
            depths = (0, *(draw(st.integers(0, 1)) for _ in taken[1:]))
            blocks += [Block(kind, statements, depths)] if taken else []
        chapters.append(tuple(blocks))
    return Drawn(
        language,
        draw(st.sampled_from(STYLES)),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.booleans()),
        tuple(chapters),
    )


class Writer:
    """Writes a drawn report as Markdown; a subclass writes other forms of the same parts."""

    def __init__(self, report: Drawn) -> None:
        self.report = report
        self.numbers: dict[int, int] = {}  # of the sources in the list that comes next
        self.parts: list[str] = []

    def written(self) -> str:
        self.heading(1, "R")
        for place, chapter in enumerate(self.report.chapters, 1):
            self.heading(2, f"{self.report.language.chapter} {place}")
            for block in chapter:
                getattr(self, block.kind)(block)
            if self.report.by_chapter:
                self.sources(3)
        if not self.report.by_chapter:
            self.sources(2)
        return "\n\n".join(self.parts) + "\n"

    def cited(self, one: Statement, stop: str = "") -> str:
        """A statement with its marks and `stop`."""
        marks = self.marks(one.sources)
        space = "" if self.report.style == "raised" else self.report.language.space
        if self.report.style == "numbers behind the stop" and stop:
            return f"{self.text(one.said)}{stop}{marks}"
        return self.text(one.said) + (space + marks if marks else "") + stop

    def marks(self, sources: tuple[int, ...]) -> str:
        style = self.report.style
        if style in ("links", "bare"):
            return " ".join(self.link(n) if style == "links" else self.bare(n) for n in sources)
        numbers = [self.numbers.setdefault(n, len(self.numbers) + 1) for n in sources]
        return (
            ",".join(map(self.number, numbers)) if style == "raised" else "".join(map(self.number, numbers))
        )

    def sources(self, level: int) -> None:
        """The list of what was cited by number since the last one."""
        if self.numbers:
            self.heading(level, self.report.language.sources)
            self.entries({number: n for n, number in self.numbers.items()})
        self.numbers = {}

    def text(self, words: str) -> str:
        return words

    def link(self, n: int) -> str:
        return f"([Work {n}]({self.bare(n)}))"

    def bare(self, n: int) -> str:
        return address(n).replace("_", "\\_").replace("&", "\\&") if self.report.escapes else address(n)

    def number(self, number: int) -> str:
        if self.report.style == "footnotes":
            return f"[^{number}]"
        return f"<sup>{number}</sup>" if self.report.style == "raised" else f"[{number}]"

    def heading(self, level: int, title: str) -> None:
        self.parts.append(f"{'#' * level} {title}")

    def paragraph(self, block: Block) -> None:
        stop, space = self.report.language.stop, self.report.language.space
        self.parts.append(space.join(self.cited(one, stop) for one in block.statements))

    def list(self, block: Block) -> None:
        items = zip(block.depths, block.statements, strict=True)
        self.parts.append("\n".join(f"{'  ' * depth}- {self.cited(one, '.')}" for depth, one in items))

    def rows(self, block: Block) -> Iterator[tuple[str, ...]]:
        area, finding, source = self.report.language.columns
        yield (area, finding) if self.report.in_cells else (area, finding, source)
        for place, one in enumerate(block.statements, 1):
            name = f"N{place}"
            if self.report.in_cells:
                yield name, self.cited(one)
            else:
                yield name, self.text(one.said), self.marks(one.sources)

    def table(self, block: Block) -> None:
        head, *rows = self.rows(block)
        ruler = tuple("---" for _ in head)
        self.parts.append("\n".join(f"| {' | '.join(row)} |" for row in (head, ruler, *rows)))

    def entries(self, sources: dict[int, int]) -> None:
        colon = ":" if self.report.style == "footnotes" else ""
        mark = "^" if self.report.style == "footnotes" else ""
        lines = (f"[{mark}{number}]{colon} Work {n}. {self.bare(n)}" for number, n in sources.items())
        self.parts.append("\n".join(lines))


class HTML(Writer):
    def text(self, words: str) -> str:
        return html.escape(words)

    def link(self, n: int) -> str:
        return f'(<a href="{html.escape(address(n))}">Work {n}</a>)'

    def bare(self, n: int) -> str:
        return html.escape(address(n))

    def number(self, number: int) -> str:
        inside = number if self.report.style == "raised" else f"[{number}]"
        return (
            f'<sup><a href="#r{number}">{inside}</a></sup>' if self.report.escapes else f"<sup>{inside}</sup>"
        )

    def heading(self, level: int, title: str) -> None:
        self.parts.append(f"<h{level}>{title}</h{level}>")

    def paragraph(self, block: Block) -> None:
        super().paragraph(block)
        self.parts[-1] = f"<p>{self.parts[-1]}</p>"

    def list(self, block: Block) -> None:
        written, depth = "", -1
        for deep, one in zip(block.depths, block.statements, strict=True):
            written += "<ul>" if deep > depth else "</li></ul></li>" if deep < depth else "</li>"
            written += f"<li>{self.cited(one, '.')}"
            depth = deep
        self.parts.append(written + "</li></ul>" * (depth + 1))

    def table(self, block: Block) -> None:
        head, *rows = self.rows(block)
        made = [(head, "th"), *((row, "td") for row in rows)]
        lines = ("".join(f"<{tag}>{cell}</{tag}>" for cell in row) for row, tag in made)
        self.parts.append(f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>")

    def entries(self, sources: dict[int, int]) -> None:
        items = (f'<li id="r{number}">Work {n}. {self.bare(n)}</li>' for number, n in sources.items())
        self.parts.append(f"<ol>{''.join(items)}</ol>")


class Word(Writer):
    """Marks are written between control characters first, and then as runs of a document."""

    def __init__(self, report: Drawn) -> None:
        super().__init__(report)
        self.document = docx.Document()

    def body(self) -> bytes:
        self.written()
        file = io.BytesIO()
        self.document.save(file)
        return file.getvalue()

    def fill(self, paragraph: Any, text: str) -> None:
        for place, part in enumerate(text.split("\x01")):
            if place % 2 == 0:
                paragraph.add_run(part)
            elif part.isdecimal():
                paragraph.add_run(part).font.superscript = True
            else:
                add_link(paragraph, *part.split("\x02"))

    def link(self, n: int) -> str:
        return f"(\x01Work {n}\x02{address(n)}\x01)"

    def bare(self, n: int) -> str:
        return address(n)

    def number(self, number: int) -> str:
        return f"\x01{number}\x01" if self.report.style == "raised" else f"[{number}]"

    def heading(self, level: int, title: str) -> None:
        self.document.add_heading(title, level)

    def paragraph(self, block: Block) -> None:
        super().paragraph(block)
        self.fill(self.document.add_paragraph(), self.parts.pop())

    def list(self, block: Block) -> None:
        for depth, one in zip(block.depths, block.statements, strict=True):
            style = "List Bullet 2" if depth else "List Bullet"
            self.fill(self.document.add_paragraph(style=style), self.cited(one, "."))

    def table(self, block: Block) -> None:
        rows = list(self.rows(block))
        made = self.document.add_table(len(rows), len(rows[0]))
        for cells, row in zip(made.rows, rows, strict=True):
            for cell, text in zip(cells.cells, row, strict=True):
                self.fill(cell.paragraphs[0], text)

    def entries(self, sources: dict[int, int]) -> None:
        for number, n in sources.items():
            self.document.add_paragraph(f"[{number}] Work {n}. {address(n)}")


def pairs(text: str) -> set[tuple[str, str]]:
    """(key, URL) of what a report says, and (the whole fact, URL) for a fact that names none or several."""
    assert cited(text).triplets == parse(text).triplets
    found = set[tuple[str, str]]()
    for triplet in parse(text).triplets:
        keys = [key for key in KEYS if key in triplet.fact]
        found.add((keys[0] if len(keys) == 1 else triplet.fact, triplet.url))
    return found


@given(drawn())
def test_assembled_markdown_gives_exactly_its_pairs(report: Drawn) -> None:
    assert pairs(Writer(report).written()) == report.pairs


@settings(max_examples=15, deadline=None)
@given(report=drawn())
def test_assembled_html_and_word_give_the_same_pairs(
    report: Drawn, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder: Path = tmp_path_factory.mktemp("r")
    (folder / "r.html").write_text(f"<html><body>{HTML(report).written()}</body></html>", encoding="utf-8")
    (folder / "r.docx").write_bytes(Word(report).body())
    for name in ("r.html", "r.docx"):
        assert pairs(read_report(InputFile(folder / name))) == report.pairs


@given(
    drawn(), st.sampled_from(["Nobody counted the swans.", "- Nobody counted the swans either.", "## Aside"])
)
def test_prose_without_sources_adds_no_pair(report: Drawn, added: str) -> None:
    text = Writer(report).written().replace("\n\n## ", f"\n\n{added}\n\n## ", 2)
    assert pairs(text) == report.pairs
