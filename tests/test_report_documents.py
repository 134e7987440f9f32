"""A report in HTML or Word says what it says in Markdown: headings, items, tables, links and footnotes."""

import io
import zipfile
from pathlib import Path

import docx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.engine.formats.documents import DocumentError
from adjudge.engine.formats.input_files import InputFile
from adjudge.engine.formats.report_documents import read_report
from adjudge.scoring.text.citations import parse
from tests.word_files import add_link

MARKDOWN = """# Bridges

## Spans

The span is 312 metres ([Register](https://r.example/a?b=1&c_2=3)).

- It opened in 1931.
- It was paid by [tolls](https://t.example/)."""

HTML = """<html><head><title>No</title><style>p{}</style></head><body><nav></nav><h1>Bridges</h1><h2>Spans</h2>
<p>The span is 312 metres (<a href="https://r.example/a?b=1&amp;c_2=3">Register</a>).</p>
<p style="display: none">Hidden <a href="https://no.example/">no</a></p><!-- no -->
<ul><li>It opened in 1931.</li><li>It was paid by <a href="https://t.example/">tolls</a>.</li></ul>
<script>no()</script></body></html>"""


def read(folder: Path, name: str, body: bytes) -> str:
    (folder / name).write_bytes(body)
    return read_report(InputFile(folder / name))


def word() -> bytes:
    made = docx.Document()
    made.add_heading("Bridges", 0)
    made.add_heading("Spans", 2)
    first = made.add_paragraph("The span is 312 metres (")
    add_link(first, "Register", "https://r.example/a?b=1&c_2=3")
    first.add_run(").")
    made.add_paragraph("It opened in 1931.", style="List Bullet")
    item = made.add_paragraph("It was paid by ", style="List Bullet")
    add_link(item, "tolls", "https://t.example/")
    item.add_run(".")
    file = io.BytesIO()
    made.save(file)
    return file.getvalue()


def test_html_and_word_are_the_same_markdown(tmp_path: Path) -> None:
    assert read(tmp_path, "r.html", HTML.encode()) == MARKDOWN
    assert read(tmp_path, "r.docx", word()) == MARKDOWN
    assert read(tmp_path, "r.md", MARKDOWN.encode()) == MARKDOWN


def test_footnotes_are_marks_and_definitions(tmp_path: Path) -> None:
    html = """<p>It spans 312 metres.<sup id="r1"><a href="#n1">[1]</a></sup> It is <a href="#p">long</a>.</p>
    <p id="p">So.</p><section><ol>
    <li id="n1"><p>Lee, <a href="https://r.example/">Register</a>. <a href="#r1">↩</a></p></li></ol>
    </section>"""
    said = read(tmp_path, "r.html", html.encode())
    assert said.startswith("It spans 312 metres.[^1] It is ")
    assert said.endswith("[^1]: Lee, [Register](https://r.example/).")


WORD_NOTE = '<a href="#_ftn1" name="_ftnref1"><span>[1]</span></a>'
GOOGLE_NOTE = '<sup><a href="#ftnt1" id="ftnt_ref1">[1]</a></sup>'
SPHINX_NOTE = '<a href="#id1" id="rid1">[<span>1</span>]</a>'
SOURCE = 'Lee, <a href="https://r.example/">Register</a>.'


@pytest.mark.parametrize(
    ("mark", "note"),
    [
        (
            WORD_NOTE,
            f'<div id=ftn1><p><a href="#_ftnref1" name="_ftn1"><span>[1]</span></a> {SOURCE}</p></div>',
        ),
        (
            GOOGLE_NOTE,
            f'<div><p><a href="#ftnt_ref1" id="ftnt1">[1]</a><span>&nbsp;{SOURCE}</span></p></div>',
        ),
        (SPHINX_NOTE, f'<aside id="id1"><span>[<a href="#rid1">1</a>]</span><p>{SOURCE}</p></aside>'),
        (GOOGLE_NOTE, f'<p><a href="#ftnt_ref1" id="ftnt1">1</a>. {SOURCE}</p>'),
    ],
)
def test_note_begins_at_its_anchor_and_loses_its_own_label(mark: str, note: str, tmp_path: Path) -> None:
    html = f"<p>It spans 312 metres.{mark} It is long.</p>{note}<p>So.</p>"
    said = read(tmp_path, "r.html", html.encode())
    assert [" ".join(line.split()) for line in said.split("\n") if line] == [
        "It spans 312 metres.[^1] It is long.",
        "[^1]: Lee, [Register](https://r.example/).",
        "So.",
    ]


@pytest.mark.parametrize("target", ['<h2><a id="s1"></a>Spans</h2>', '<p>As said <a id="s1">there</a>.</p>'])
def test_anchor_of_a_heading_or_within_a_sentence_begins_no_note(target: str, tmp_path: Path) -> None:
    html = f'<div><p>See part <a href="#s1">1</a>.</p>{target}</div>'
    assert "[^1]" not in read(tmp_path, "r.html", html.encode())


SIMPLE = """<w:fldSimple w:instr='{}'><w:r><w:t>Register</w:t></w:r></w:fldSimple>"""
COMPLEX = (
    '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> HYPER</w:instrText></w:r>'
    '<w:r><w:instrText>{}</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>'
    '<w:r><w:t>Register</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>'
)


@pytest.mark.parametrize(
    ("field", "link"),
    [
        (SIMPLE.format(' HYPERLINK "https://r.example/?a=1&amp;b=2" '), "https://r.example/?a=1&b=2"),
        (SIMPLE.format("HYPERLINK https://r.example/"), "https://r.example/"),
        (COMPLEX.format('LINK "https://r.example/" \\l "x" \\t "_blank" '), "https://r.example/#x"),
        (COMPLEX.format('LINK \\h "https://r.example/" \\o "A tip"'), "https://r.example/"),
        (COMPLEX.format('LINK \\l "x"'), "#x"),
    ],
)
def test_field_of_word_is_its_link(field: str, link: str, tmp_path: Path) -> None:
    assert read(tmp_path, "r.docx", word_of(field)) == f"See [Register]({link})."


def test_simple_field_of_word_keeps_its_words(tmp_path: Path) -> None:
    assert read(tmp_path, "r.docx", word_of(SIMPLE.format("REF a"))) == "See Register."


def word_of(field: str) -> bytes:
    """A Word file of one sentence with `field` in it."""
    made = docx.Document()
    paragraph = made.add_paragraph("See ")
    names = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    for one in docx.oxml.parse_xml(f"<w:p {names}>{field}</w:p>"):
        paragraph._p.append(one)
    paragraph.add_run(".")
    file = io.BytesIO()
    made.save(file)
    return file.getvalue()


def test_note_of_each_chapter_is_its_own(tmp_path: Path) -> None:
    chapter = '<p>It spans {0} metres.<sup><a href="#n1">1</a></sup></p><ol><li id="n1">https://r.example/{0}</li></ol>'
    said = read(tmp_path, "r.html", (chapter.format(312) + chapter.format(418)).encode())
    assert [line for line in said.splitlines() if line.startswith("[^1]: ")] == [
        "[^1]: https://r.example/312",
        "[^1]: https://r.example/418",
    ]


def test_cells_keep_their_links(tmp_path: Path) -> None:
    html = '<table><tr><th>What</th><th>Source</th></tr><tr><td>312 m</td><td><a href="https://r.example/">R</a></td></tr></table>'
    assert "| 312 m | [R](https://r.example/) |" in read(tmp_path, "r.html", html.encode())


def test_raised_numbers_stay_raised(tmp_path: Path) -> None:
    html = "<p>It spans 312 metres<sup>1, 2</sup> and was the 4<sup>th</sup>.</p>"
    assert read(tmp_path, "r.html", html.encode()) == "It spans 312 metres<sup>1, 2</sup> and was the 4th."


def test_notes_at_the_foot_of_a_table_are_their_cells_own(tmp_path: Path) -> None:
    cells = ("The mill grinds.<sup>a</sup>", "Barges load ninety.<sup>b</sup>", "No bridge crosses.")
    rows = "".join(f"<tr><td>{cell}</td></tr>" for cell in cells)
    notes = "".join(
        f'<tr><td><sup>{sign}</sup> A work, <a href="https://a.example/{sign}">here</a></td></tr>'
        for sign in "ab"
    )
    page = f"<table><tr><th>Finding</th></tr>{rows}<tfoot>{notes}</tfoot></table>"
    text = read(tmp_path, "r.html", page.encode())
    assert [(one.fact, one.url) for one in parse(text).triplets] == [
        ("Finding: The mill grinds.", "https://a.example/a"),
        ("Finding: Barges load ninety.", "https://a.example/b"),
    ]


def test_first_row_of_a_table_is_its_header(tmp_path: Path) -> None:
    html = "<table><tr><td>What</td><td>Span</td></tr><tr><td>Bridge</td><td>312 m</td></tr></table>"
    assert read(tmp_path, "r.html", html.encode()).startswith("| What | Span |\n| --- | --- |\n| Bridge")


WORDS = st.text("abcdefghij ", min_size=1, max_size=20).map(lambda text: f"x{text.strip()}x")


@settings(max_examples=40, deadline=None)
@given(blocks=st.lists(st.tuples(st.sampled_from(["h2", "p", "li"]), WORDS), min_size=1, max_size=8))
def test_every_block_stands_on_a_line_of_its_own(
    blocks: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    marks = {"h2": "## ", "p": "", "li": "- "}
    html = "".join(
        f"<ul><li>{text}</li></ul>" if kind == "li" else f"<{kind}>{text}</{kind}>" for kind, text in blocks
    )
    said = read(tmp_path_factory.mktemp("r"), "r.html", html.encode())
    assert [line for line in said.split("\n") if line] == [
        marks[kind] + " ".join(text.split()) for kind, text in blocks
    ]


def broken_word() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("[Content_Types].xml", "<")
        archive.writestr("word/document.xml", "<")
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "body"),
    [("r.docx", b"PK"), ("r.docx", broken_word()), ("r.html", b"<div>" * 50_000), ("r.pdf", b"no PDF")],
)
def test_what_cannot_be_read_is_a_document_error(name: str, body: bytes, tmp_path: Path) -> None:
    with pytest.raises(DocumentError):
        read(tmp_path, name, body)
