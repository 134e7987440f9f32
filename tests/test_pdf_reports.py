"""A report as PDF keeps what its author wrote: headings, lists, tables, raised marks and links."""

import io

import pypdfium2
import pytest

from adjudge.engine.formats.dataset import InputFile
from adjudge.engine.formats.documents import DocumentError
from adjudge.engine.formats.report_documents import read_report

HEAD, BODY, SMALL = 18, 10, 6


def pdf(
    signs: list[tuple[float, float, float, str]],
    links: list[tuple[tuple[int, ...], str]] = (),
    drawn: str = "",
) -> bytes:
    """A page with texts at (left, foot, size), and areas (left, foot, right, top) that lead to addresses."""
    shown = drawn.encode() + "".join(
        f"BT /F1 {size} Tf {left} {foot} Td ({text}) Tj ET\n" for left, foot, size, text in signs
    ).encode("latin-1")
    areas = [
        f"<< /Type /Annot /Subtype /Link /Rect [{' '.join(map(str, area))}] /A << /S /URI /URI ({url}) >> >>"
        for area, url in links
    ]
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Annots ["
        + " ".join(areas).encode()
        + b"] /Resources << /Font << /F1 "
        + b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >> >> >> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(shown), shown),
    ]
    body = b"%PDF-1.4\n"
    places = []
    for number, one in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return (
        body
        + b"xref\n0 5\n0000000000 65535 f \n"
        + table
        + b"trailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % len(body)
    )


def read(tmp_path, body: bytes) -> str:
    file = tmp_path / "1.pdf"
    file.write_bytes(body)
    return read_report(InputFile(file))


URL = "https://kites.example/red?a=1"


def test_words_within_an_area_are_its_link(tmp_path):
    # Courier: 6 points a sign at size 10; "Kite Office" are the signs 12 to 22 of the line.
    page = pdf([(50, 700, BODY, "It is red \\(Kite Office\\).")], [((116, 697, 182, 710), URL)])
    assert read(tmp_path, page) == f"It is red ([Kite Office](<{URL}>))."


@pytest.mark.parametrize("url", ["mailto:a@kites.example", "tel:12", "#top", "../red.pdf"])
def test_areas_that_lead_to_people_or_within_are_no_links(tmp_path, url):
    assert read(tmp_path, pdf([(50, 700, BODY, "It is red.")], [((50, 697, 200, 710), url)])) == "It is red."


@pytest.mark.parametrize("url", ["javascript:alert", "file:///red.pdf", "ftp://kites.example/red"])
def test_areas_that_lead_to_no_page_are_links_as_elsewhere(tmp_path, url):
    page = pdf([(50, 700, BODY, "It is red Kite.")], [((110, 697, 134, 710), url)])
    assert read(tmp_path, page) == f"It is red [Kite](<{url}>)."


def test_larger_lines_are_headings_and_signs_begin_items(tmp_path):
    page = pdf(
        [
            (50, 760, HEAD, "Kites of the north"),
            (50, 720, BODY, "The red kite flies"),
            (50, 708, BODY, "over the harbour."),
            (50, 680, BODY, "\\225 It is red."),
            (50, 668, BODY, "\\225 It is large."),
            (50, 640, BODY, "1. First."),
            (50, 628, BODY, "2. Second."),
        ]
    )
    assert read(tmp_path, page).split("\n\n") == [
        "# Kites of the north",
        "The red kite flies over the harbour.",
        "- It is red.",
        "- It is large.",
        "1. First.",
        "2. Second.",
    ]


def test_raised_numbers_are_marks_of_the_notes_at_the_end(tmp_path):
    page = pdf(
        [
            (50, 700, BODY, "The kite is red."),
            (146, 704, SMALL, "1"),
            (50, 660, BODY, "1. Kite Office"),
        ],
        [((68, 657, 140, 670), URL)],
    )
    assert read(tmp_path, page) == f"The kite is red.[^1]\n\n[^1]: [Kite Office](<{URL}>)"


def test_raised_numbers_without_notes_stay_raised(tmp_path):
    page = pdf([(50, 700, BODY, "It has 10"), (104, 704, SMALL, "2"), (110, 700, BODY, "metres.")])
    assert "10<sup>2</sup>" in read(tmp_path, page)


def test_wide_gaps_are_the_columns_of_a_table(tmp_path):
    rows = [("Kite", "Colour"), ("Wren", "red"), ("Finch", "green")]
    page = pdf(
        [
            (left, 700 - 14 * at, BODY, cell)
            for at, row in enumerate(rows)
            for left, cell in zip((50, 200), row, strict=True)
        ]
    )
    assert read(tmp_path, page) == "| Kite | Colour |\n| --- | --- |\n| Wren | red |\n| Finch | green |"


@pytest.mark.parametrize(
    ("above", "below", "said"),
    [
        (
            "See https://kites.example/red-",
            "kites.html now.",
            "See https://kites.example/red-kites.html now.",
        ),
        ("See https://kites.example/a", "?b=1&c=2 now.", "See https://kites.example/a?b=1&c=2 now."),
        ("See https://kites.example/a?", "b=1&c=2 now.", "See https://kites.example/a?b=1&c=2 now."),
        ("See https://kites.example/", "and be glad.", "See https://kites.example/ and be glad."),
        ("The kite is migra-", "tory and red.", "The kite is migratory and red."),
    ],
)
def test_what_a_line_divides_is_one_again(tmp_path, above, below, said):
    assert read(tmp_path, pdf([(50, 700, BODY, above), (50, 688, BODY, below)])) == said


def test_link_over_two_lines_is_one(tmp_path):
    page = pdf(
        [(50, 700, BODY, "Red Kite"), (50, 688, BODY, "Office says so.")],
        [((74, 697, 98, 710), URL), ((50, 685, 86, 698), URL)],
    )
    assert read(tmp_path, page) == f"Red [Kite Office](<{URL}>) says so."


def test_address_over_two_lines_of_a_link_has_no_blank(tmp_path):
    page = pdf(
        [(50, 700, BODY, "https://kites.exam"), (50, 688, BODY, "ple/red?a=1")],
        [((50, 697, 158, 710), URL), ((50, 685, 116, 698), URL)],
    )
    assert read(tmp_path, page) == f"[{URL}](<{URL}>)"


def test_drawn_bullets_begin_items(tmp_path):
    page = pdf(
        [(50, 700, BODY, "It is red."), (50, 688, BODY, "It is large,"), (50, 676, BODY, "and old.")],
        drawn="40 701 4 4 re f 40 689 4 4 re f 20 677 30 1 re f\n",
    )
    assert read(tmp_path, page) == "- It is red.\n\n- It is large, and old."


def test_mark_that_stands_high_is_of_its_line(tmp_path):
    page = pdf(
        [
            (50, 700, BODY, "The kite is red."),
            (146, 707, 4, "1,2"),
            (50, 688, BODY, "It is large."),
            (50, 640, BODY, "1. Kite Office"),
            (50, 628, BODY, "2. Kite Club"),
        ]
    )
    assert read(tmp_path, page).startswith("The kite is red.[^1][^2] It is large.")


@pytest.mark.parametrize(
    ("above", "below", "blocks"),
    [
        ("The kite is red", "and large.", 1),
        ("It lives in Wales,", "Kent and Fife.", 1),
        ("The kite is red.", "and large.", 2),
        ("The kite is red", "Birds of Kent", 2),
        ("The kite is red", "- and large", 2),
    ],
)
def test_paragraph_goes_on_over_the_end_of_a_page(tmp_path, above, below, blocks):
    made = pypdfium2.PdfDocument.new()
    for signs in (
        [(50, 700, BODY, "It is so."), (50, 60, BODY, above)],
        [(50, 700, BODY, below), (50, 660, BODY, "It flies.")],
    ):
        made.import_pages(pypdfium2.PdfDocument(pdf(signs)))
    file = io.BytesIO()
    made.save(file)
    assert len(read(tmp_path, file.getvalue()).split("\n\n")) == blocks + 2


def test_what_stands_at_the_edge_of_most_pages_is_not_the_report(tmp_path):
    made = pypdfium2.PdfDocument.new()
    for number, text in enumerate(("The kite is red.", "It is large.", "It is old."), 1):
        page = pdf(
            [
                (50, 780, BODY, "Kites of the north"),
                (50, 700, BODY, text),
                (50, 660, BODY, "It flies."),
                (50, 600, BODY, f"{text} So."),
                (50, 20, BODY, f"{number} of 3"),
            ]
        )
        made.import_pages(pypdfium2.PdfDocument(page))
    file = io.BytesIO()
    made.save(file)
    said = read(tmp_path, file.getvalue()).split("\n\n")
    assert said == [
        *("The kite is red.", "It flies.", "The kite is red. So."),
        *("It is large.", "It flies.", "It is large. So."),
        *("It is old.", "It flies.", "It is old. So."),
    ]


def test_what_is_no_pdf_is_an_error(tmp_path):
    for body in (b"", b"%PDF-1.4\nbroken", pdf([])):
        with pytest.raises(DocumentError):
            read(tmp_path, body)
