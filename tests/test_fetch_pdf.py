"""What a reader of a PDF reads: divided words joined, raised numbers told apart, forms without words refused."""

import re
from collections.abc import Sequence

import pytest

from adjudge.fetchers.extract import extract
from adjudge.fetchers.process import Unreadable

PDF = "application/pdf"


def pdf(
    *pieces: tuple[float, float, float, str],
    catalog: str = "",
    page: str = "",
    form: str = "",
    more: Sequence[str] = (),
) -> bytes:
    """A PDF of one page: pieces of text with x, y and size, all in points. Text is written as PDF strings are.

    `more` are objects from the seventh on.
    """
    drawing = "BT\n" + "".join(
        f"/F1 {size} Tf 1 0 0 1 {x} {y} Tm ({text}) Tj\n" for x, y, size, text in pieces
    )
    content = (drawing + "ET").encode("cp1252")
    objects: Sequence[bytes] = [
        f"<< /Type /Catalog /Pages 2 0 R {catalog} >>".encode(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> %b >>" % page.encode(),
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        form.encode() or b"null",
        *(one.encode("cp1252") for one in more),
    ]
    body, places = b"%PDF-1.7\n", []
    for number, thing in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, thing)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    end = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (size, len(body))
    return body + b"xref\n0 %d\n0000000000 65535 f \n" % size + table + end


def lines(*texts: str) -> bytes:
    return pdf(*((56, 770 - 16 * n, 12, text) for n, text in enumerate(texts)))


def words(body: bytes) -> str:
    return " ".join(extract(body, PDF, "trafilatura").text.split())


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("a new temper-", "ature chamber"), "a new temperature chamber"),
        (("6,1 Mil\xad", "lionen Mark"), "6,1 Millionen Mark"),
        (("with Jean-", "Paul Orrin"), "with Jean-Paul Orrin"),
        (("a COVID-", "19 ward"), "a COVID-19 ward"),
        (("it opens - if at all -", "at noon"), "it opens - if at all - at noon"),
    ],
)
def test_divided_words_are_joined(texts: tuple[str, ...], said: str) -> None:
    found = words(lines(*texts))
    assert found == said
    assert not re.search(r"[\x00-\x08\x0e-\x1f]", found)


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        (((56, 700, 12, "about 10"), (102, 705, 7, "6"), (107, 700, 12, " cells")), "about 10^6 cells"),
        (
            ((56, 700, 12, "a hall of 480 m"), (136, 705, 7, "2"), (141, 700, 12, " of oak")),
            "a hall of 480 m^2 of oak",
        ),
        (((56, 700, 12, "one in 10"), (106, 705, 7, "-6"), (114, 700, 12, " parts")), "one in 10^-6 parts"),
        (((56, 700, 12, "CO"), (74, 697, 7, "2"), (79, 700, 12, " and 106")), "CO2 and 106"),
        (((56, 700, 12, "Room 10"), (103, 700, 9, "6 is open")), "Room 106 is open"),
    ],
)
def test_raised_numbers_are_marked(pieces: tuple[tuple[float, float, float, str], ...], said: str) -> None:
    assert (
        words(pdf((56, 740, 12, "Rooms 106 and 10 6."), *pieces, (56, 660, 12, "Page 106")))
        == f"Rooms 106 and 10 6. {said} Page 106"
    )


def test_text_scaled_by_its_matrix_is_measured_on_the_page() -> None:
    body = pdf((56, 700, 12, "about 10"), (102, 705, 7, "6"), (107, 700, 12, " cells"))
    body = body.replace(b"/F1 12 Tf 1 0 0 1", b"/F1 1 Tf 12 0 0 12").replace(
        b"/F1 7 Tf 1 0 0 1", b"/F1 1 Tf 7 0 0 7"
    )
    assert "10^6" in words(body)


def test_lines_that_run_up_the_page_stay_lines() -> None:
    rows = ("Year Ships 1911", "2016 418 5412", "2022 377 4890", "2023 380 4911")
    body = pdf(*((300 + 16 * n, 100, 10, text) for n, text in enumerate(rows)))
    assert words(body.replace(b"Tf 1 0 0 1", b"Tf 0 1 -1 0")) == " ".join(rows)


def test_what_stands_outside_of_the_page_is_left_out() -> None:
    assert words(pdf((56, 700, 12, "Arches: 19"), (56, 900, 12, "Arches: 77"))) == "Arches: 19"


def test_columns_are_read_one_after_the_other() -> None:
    left = [
        (56, 700 - 14 * n, 11, text) for n, text in enumerate(["The library lends", "71,300 books a year."])
    ]
    right = [(320, 700 - 14 * n, 11, text) for n, text in enumerate(["It opens at 8:30", "on weekdays."])]
    said = words(pdf(*left, *right))
    assert said == "The library lends 71,300 books a year. It opens at 8:30 on weekdays."


def test_a_form_that_asks_for_another_program_is_unsupported() -> None:
    template = "<< /Fields [] /XFA (<xdp:xdp xmlns:xdp='http://ns.adobe.com/xdp/'/>) >>"
    body = pdf((56, 770, 12, "One moment."), catalog="/AcroForm 6 0 R /NeedsRendering true", form=template)
    with pytest.raises(Unreadable, match="XFA"):
        extract(body, PDF, "trafilatura")


def test_a_form_is_read_as_it_is_filled_in() -> None:
    body = pdf(
        (56, 770, 12, "Length of the bridge:"),
        catalog="/AcroForm << /Fields [7 0 R] >>",
        more=(
            "<< /Type /Annot /Subtype /Widget /FT /Tx /T (n) /V (1,240 metres) /Rect [200 700 400 720] /F 4"
            " /AP << /N 8 0 R >> >>",
            "<< /Type /XObject /Subtype /Form /BBox [0 0 200 20] /Resources << /Font << /F1 5 0 R >> >>"
            " /Length 41 >>\nstream\nBT /F1 11 Tf 2 5 Td (1,240 metres) Tj ET\nendstream",
        ),
        page="/Annots [7 0 R]",
    )
    assert words(body) == "Length of the bridge: 1,240 metres"


@pytest.mark.parametrize("catalog", ["/Collection << /View /D >>", "/PageMode /UseAttachments"])
def test_a_portfolio_is_the_files_in_it(catalog: str) -> None:
    names = "/Names << /EmbeddedFiles << /Names [(a.pdf) 7 0 R] >> >>"

    def portfolio(file: bytes) -> bytes:
        more = (
            "<< /Type /Filespec /F (a.pdf) /UF (a.pdf) /EF << /F 8 0 R >> >>",
            f"<< /Type /EmbeddedFile /Length {len(file)} >>\nstream\n{file.decode('cp1252')}\nendstream",
        )
        return pdf((56, 770, 12, "Open this in Acrobat."), catalog=f"{catalog} {names}", more=more)

    assert "Arches: 19" in words(portfolio(lines("Arches: 19")))
    if "Collection" in catalog:
        with pytest.raises(Unreadable, match="no text"):
            words(portfolio(b"no PDF"))
    else:
        assert words(portfolio(b"no PDF")) == "Open this in Acrobat."


def test_a_page_without_text_is_unsupported() -> None:
    with pytest.raises(Unreadable, match="no text"):
        extract(pdf(), PDF, "trafilatura")
