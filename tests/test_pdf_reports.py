"""A report as PDF keeps what its author wrote: headings, lists, tables, raised marks and links."""

import io
import itertools

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


LEFTS = (50, 200, 350)
ROWS = [
    (["Kite"], ["Colour of the", "upper side"], ["Seen"]),
    (["Red kite of", "the hills"], ["red"], ["2021"]),
    (["Wren"], ["brown"], ["See the", "Kite Office", "of Wales"]),
]
TABLE = (
    "| Kite | Colour of the upper side | Seen |\n| --- | --- | --- |\n"
    "| Red kite of the hills | red | 2021 |\n| Wren | brown | See the Kite Office of Wales |"
)


def cells(rows, top: float = 700, line: float = 12, row: float = 48) -> list[tuple[float, float, float, str]]:
    """The lines of cells that begin at LEFTS, cell by cell."""
    return [
        (left, top - row * at - line * number, BODY, text)
        for at, cells in enumerate(rows)
        for left, cell in zip(LEFTS, cells, strict=True)
        for number, text in enumerate(cell)
    ]


def grid(heights: list[float], lefts: list[float]) -> str:
    """The rules of a grid, each piece drawn by itself."""
    across = [
        f"{left} {height} m {right} {height} l S"
        for height in heights
        for left, right in itertools.pairwise(lefts)
    ]
    upright = [
        f"{left} {low} m {left} {high} l S" for left in lefts for high, low in itertools.pairwise(heights)
    ]
    return "\n".join([*across, *upright, ""])


def test_cells_of_a_drawn_grid_hold_several_lines(tmp_path):
    drawn = grid([712, 664, 616, 568], [40, 190, 340, 490])
    office = ((350, 589, 416, 602), URL)
    said = read(tmp_path, pdf([*cells(ROWS), (50, 540, BODY, "It flies.")], [office], drawn))
    assert said == TABLE.replace("Kite Office", f"[Kite Office](<{URL}>)") + "\n\nIt flies."


def test_cells_may_span_rows_and_columns(tmp_path):
    rows = [(["Kite"], ["Seen in these many years"], []), ([], ["2020"], ["2021"])]
    drawn = "\n".join(
        f"{a} {b} m {c} {d} l S"
        for a, b, c, d in [
            *((40, height, 490, height) for height in (712, 616)),
            (190, 664, 490, 664),
            *((left, 712, left, 616) for left in (40, 190, 490)),
            (340, 664, 340, 616),
        ]
    )
    said = read(tmp_path, pdf(cells(rows), drawn=f"{drawn}\n"))
    assert said == "| Kite | Seen in these many years |  |\n| --- | --- | --- |\n|  | 2020 | 2021 |"


def test_link_is_no_rule_of_the_cell_it_is_underlined_in(tmp_path):
    rows = [(["Kite"], ["Colour"], ["Seen"]), (["Wren"], ["See the", "Kite Office"], ["2021"])]
    drawn = grid([712, 664, 616], [40, 190, 340, 490]) + "200 650 m 280 650 l S\n"
    said = read(tmp_path, pdf(cells(rows), drawn=drawn))
    assert said == "| Kite | Colour | Seen |\n| --- | --- | --- |\n| Wren | See the Kite Office | 2021 |"


@pytest.mark.parametrize("row", [36, 48])
@pytest.mark.parametrize("drawn", ["", "0.9 g 40 664 450 24 re f 0 g\n", "40 712 m 490 712 l S\n"])
def test_cells_between_spaces_hold_several_lines(tmp_path, row, drawn):
    # With 36 points a row, none is further from the next than lines are.
    assert read(tmp_path, pdf(cells(ROWS, row=row), drawn=drawn)) == TABLE


def test_lines_of_two_columns_are_no_table(tmp_path):
    left = [(50, 700 - 12 * at, BODY, f"On the left {at}.") for at in range(4)]
    right = [(200, 700 - 12 * at, BODY, f"On the right {at}.") for at in range(4)]
    assert "|" not in read(tmp_path, pdf([*left, *right]))


def test_items_are_no_table_however_far_from_their_numbers(tmp_path):
    items = [(50, 700, BODY, "1."), (90, 700, BODY, "Wren"), (90, 688, BODY, "and finch.")]
    page = pdf([*items, (50, 676, BODY, "2."), (90, 676, BODY, "Kite")])
    assert read(tmp_path, page).split("\n\n") == ["1. Wren and finch.", "2. Kite"]


def test_table_and_row_that_the_end_of_a_page_cuts_are_whole(tmp_path):
    above = [*ROWS[:2], (["Wren"], ["brown"], ["See the"])]
    below = [ROWS[0], ([], [], ["Kite Office", "of Wales"])]
    lefts = [40, 190, 340, 490]
    open_end = "".join(f"{left} 616 m {left} 568 l S\n" for left in lefts)
    made = pypdfium2.PdfDocument.new()
    for rows, drawn in (
        (above, grid([712, 664, 616], lefts) + open_end),
        (below, grid([712, 664, 616], lefts)),
    ):
        made.import_pages(pypdfium2.PdfDocument(pdf(cells(rows), drawn=drawn)))
    file = io.BytesIO()
    made.save(file)
    assert read(tmp_path, file.getvalue()) == TABLE


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
