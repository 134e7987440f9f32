"""Word, PowerPoint and Excel files at a cited address, whatever their label says."""

import io
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
