"""Word, PowerPoint and Excel files at a cited address, whatever their label says."""

import io
import re
import sys
import zipfile
from collections.abc import Callable
from datetime import datetime
from typing import Any

import docx
import openpyxl
import pptx
import pytest
from pptx.util import Inches

from adjudge.fetchers.extract import extract
from adjudge.fetchers.office import MissingLibrary, office_kind, read_office
from adjudge.fetchers.process import Unreadable

LABELS = ["application/zip", "application/octet-stream", "", "text/html"]


def saved(document: Any) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def word() -> bytes:
    document = docx.Document()
    document.core_properties.title = "Salt of Orrin"
    document.add_heading("Salt", 1)
    line = document.add_paragraph("The pan held 10")
    line.add_run("6").font.superscript = True
    line.add_run(" crystals on the 1")
    line.add_run("st").font.superscript = True
    table = document.add_table(2, 3)
    for number, said in enumerate(("Roof", "2013", "860,000")):
        table.cell(0, number).text = said
    table.cell(1, 0).merge(table.cell(1, 2)).text = "All in crowns"
    return saved(document)


def powerpoint() -> bytes:
    slides = pptx.Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[5])
    slide.shapes.title.text = "A trial of 1,128 batteries"
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = "83.5 percent kept"
    return saved(slides)


def excel() -> bytes:
    book = openpyxl.Workbook()
    book.active.append(["Day", "Share", "Trains"])
    book.active.append([datetime(2019, 5, 3), 0.125, 41])
    book.active["B2"].number_format = "0.0%"
    book.create_sheet("Later").append([3.25])
    return saved(book)


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (word, "Salt\nThe pan held 10^6 crystals on the 1st\nRoof | 2013 | 860,000\nAll in crowns"),
        (powerpoint, "Slide 1\nA trial of 1,128 batteries\n83.5 percent kept"),
        (excel, "Sheet Sheet\nDay | Share | Trains\n2019-05-03 | 12.5% | 41\nSheet Later\n3.25"),
    ],
)
def test_office_files_are_read_whatever_their_label(make: Callable[[], bytes], said: str, label: str) -> None:
    assert extract(make(), label, "trafilatura").text == said


W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
M = "http://schemas.openxmlformats.org/officeDocument/2006/math"
BOX = (
    '<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
    "<mc:{0}><w:txbxContent><w:p><w:r><w:t>{1}</w:t></w:r></w:p></w:txbxContent></mc:{0}></mc:AlternateContent>"
)


def word_of(markup: str) -> bytes:
    from docx.oxml import parse_xml

    document = docx.Document()
    body = document.element.body
    for node in reversed(parse_xml(f'<w:body xmlns:w="{W}" xmlns:m="{M}">{markup}</w:body>')):
        body.insert(0, node)
    return saved(document)


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


@pytest.mark.parametrize(
    ("markup", "said"),
    [
        (f"<w:sdt><w:sdtContent><w:p>{run('in a control')}</w:p></w:sdtContent></w:sdt>", "in a control"),
        (f"<w:p>{run('a ')}<w:sdt><w:sdtContent>{run('b')}</w:sdtContent></w:sdt></w:p>", "a b"),
        (
            f"<w:p>{run('sold ')}<w:ins>{run('twice')}</w:ins><w:del><w:r><w:delText>x</w:delText></w:r></w:del></w:p>",
            "sold twice",
        ),
        (f"<w:p>{run('shown')}{run('not shown', '<w:vanish/>')}</w:p>", "shown"),
        (f"<w:p>{run('So ')}<m:oMath><m:r><m:t>x=42</m:t></m:r></m:oMath></w:p>", "So x=42"),
        (f"<w:p>{run('a')}<w:r>{BOX.format('Choice', 'in a box')}</w:r></w:p>", "a\nin a box"),
        (f"<w:p>{run('a')}<w:r>{BOX.format('Fallback', 'in a box')}</w:r></w:p>", "a"),
        (
            f"<w:tbl><w:tr><w:tc><w:p>{run('outer')}</w:p><w:tbl><w:tr><w:tc><w:p>{run('inner')}</w:p></w:tc></w:tr></w:tbl>"
            "<w:p/></w:tc></w:tr></w:tbl>",
            "outer\ninner",
        ),
    ],
)
def test_word_files_are_read_as_they_are_shown(markup: str, said: str) -> None:
    assert read_office(word_of(markup), "word").text == said


def test_notes_of_word_files_are_read() -> None:
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.opc.packuri import PackURI
    from docx.opc.part import Part

    document = docx.Document()
    document.add_paragraph("The house was sold.")
    notes = f'<w:footnotes xmlns:w="{W}"><w:footnote w:id="2"><w:p>{run("In 1921.")}</w:p></w:footnote></w:footnotes>'
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
    part = Part(PackURI("/word/footnotes.xml"), kind, notes.encode(), document.part.package)
    document.part.relate_to(part, RELATIONSHIP_TYPE.FOOTNOTES)
    assert read_office(saved(document), "word").text == "The house was sold.\nIn 1921."


def test_charts_are_read_as_tables() -> None:
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE

    slides = pptx.Presentation()
    data = CategoryChartData()
    data.categories = ["Orrin", "Tarn"]
    data.add_series("Lamps", (41, 93.5))
    shapes = slides.slides.add_slide(slides.slide_layouts[6]).shapes
    shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, Inches(1), Inches(1), data)
    assert read_office(saved(slides), "powerpoint").text == "Slide 1\n| Orrin | Tarn\nLamps | 41 | 93.5"


def test_sheets_that_are_not_shown_are_left_out() -> None:
    book = openpyxl.Workbook()
    book.active.append(["shown"])
    hidden = book.create_sheet("Hidden")
    hidden.append(["not shown"])
    hidden.sheet_state = "hidden"
    assert read_office(saved(book), "excel").text == "Sheet Sheet\nshown"


def test_title_is_that_of_the_properties() -> None:
    assert extract(word(), "", "trafilatura").title == "Salt of Orrin"


def archive(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name in names:
            file.writestr(name, b"<a>")
    return buffer.getvalue()


@pytest.mark.parametrize(
    "body",
    [archive("a.txt"), archive("word/document.xml"), b"PK\x03\x04 and nothing else", b"", word()[100:]],
)
def test_other_archives_are_no_office_files(body: bytes) -> None:
    assert office_kind(body) is None


@pytest.mark.parametrize(
    "body",
    [archive("[Content_Types].xml", "word/document.xml"), word()[:-2000], saved(docx.Document())],
)
def test_broken_or_empty_office_files_are_refused(body: bytes) -> None:
    with pytest.raises(Unreadable):
        read_office(body, "word")


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docx", None)
    with pytest.raises(MissingLibrary, match=r"adjudge\[files\]"):
        read_office(word(), "word")


def test_styles_that_only_excel_takes_leave_a_book_as_it_is() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(excel())) as archive, zipfile.ZipFile(buffer, "w") as changed:
        for name in archive.namelist():
            content = archive.read(name)
            if name == "xl/styles.xml":
                content = re.sub(rb"<fill>.*?</fill>", b"<fill/>", content)
                assert b"<fill/>" in content
            changed.writestr(name, content)
    assert read_office(buffer.getvalue(), "excel") == read_office(excel(), "excel")
