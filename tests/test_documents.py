"""A user's files as sources, and the layouts of Rigorous Bench and DR3-Eval read from disk."""

import base64
import io
import json
import random
import sys
import zipfile
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest

from adjudge.engine.formats import dr3, rigorous
from adjudge.engine.formats.dataset import FormatError, InputFile
from adjudge.engine.formats.documents import DocumentError, MissingReader, read_source
from adjudge.scoring.dr3_eval.dr3 import Gold
from tests.examples import shipped
from tests.made_pdf import pdf


def word() -> bytes:
    document = docx.Document()
    document.add_paragraph("Budget of 5 million euros.")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "year", "2024"
    document.add_paragraph("After the table.")
    return saved(document)


def powerpoint() -> bytes:
    slides = pptx.Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[1])
    slide.shapes.title.text = "Growth of 8%"
    slide.notes_slide.notes_text_frame.text = "Mention the outlier."
    return saved(slides)


def excel() -> bytes:
    book = openpyxl.Workbook()
    book.active.title = "Costs"
    book.active.append(["year", "euros"])
    book.active.append([2024, 1250.5])
    return saved(book)


def saved(document) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


class TestText:
    @pytest.mark.parametrize(
        ("name", "body", "words"),
        [
            ("a.txt", "Größe 5".encode(), ["Größe 5"]),
            ("a.MD", b"# Title\n\nWords.", ["# Title", "Words."]),
            ("a.csv", b"year,euros\n2024,5", ["2024,5"]),
            (
                "a.html",
                b"<html><body><h1>Costs</h1><p>They fell by 8% in a year of storms.</p></body></html>",
                ["8%"],
            ),
            ("a.pdf", pdf("Costs fell by 8%"), ["Costs fell by 8%"]),
            ("a.docx", word(), ["Budget of 5 million", "year | 2024", "After the table."]),
            ("a.pptx", powerpoint(), ["Slide 1", "Growth of 8%", "Mention the outlier."]),
            ("a.xlsx", excel(), ["Sheet Costs", "2024 | 1250.5"]),
        ],
    )
    def test_every_kind_of_file_becomes_text(self, tmp_path, name, body, words):
        (tmp_path / name).write_bytes(body)
        source = read_source(tmp_path / name)
        assert (source.name, source.media, source.role) == (name, None, "user_file")
        places = [source.text.index(word) for word in words]
        assert places == sorted(places)

    @pytest.mark.parametrize(
        ("name", "kind"),
        [("a.png", "image/png"), ("a.JPG", "image/jpeg"), ("a.wav", "audio/wav"), ("a.mp4", "video/mp4")],
    )
    def test_pictures_sound_and_video_are_kept_as_media(self, tmp_path, name, kind):
        (tmp_path / name).write_bytes(b"\x00\xffbytes")
        media = read_source(tmp_path / name).media
        assert (media.name, media.type, base64.b64decode(media.data)) == (name, kind, b"\x00\xffbytes")


class TestHostile:
    @pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.xlsx", "a.pdf"])
    @pytest.mark.parametrize("body", [b"", b"PK\x03\x04", b"%PDF-1.4", b"\x00" * 100, b"not at all"])
    def test_file_of_another_kind_is_an_error_that_names_it(self, tmp_path, name, body):
        (tmp_path / name).write_bytes(body)
        with pytest.raises(DocumentError, match=name):
            read_source(tmp_path / name)

    @pytest.mark.parametrize(("name", "make"), [("a.docx", word), ("a.pptx", powerpoint), ("a.xlsx", excel)])
    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_broken_office_files_raise_document_errors_only(self, tmp_path, name, make):
        whole, draw = make(), random.Random(0)
        names = zipfile.ZipFile(io.BytesIO(whole)).namelist()
        for _ in range(60):
            victim, kind, buffer = draw.choice(names), draw.randrange(3), io.BytesIO()
            with zipfile.ZipFile(io.BytesIO(whole)) as archive, zipfile.ZipFile(buffer, "w") as broken:
                for entry in names:
                    content = archive.read(entry)
                    if entry == victim:
                        content = [b"", content[: draw.randrange(len(content) + 1)], b"<a/>"][kind]
                    broken.writestr(entry, content)
            (tmp_path / name).write_bytes(buffer.getvalue())
            try:
                assert read_source(tmp_path / name).text
            except DocumentError as error:
                assert name in str(error)

    def test_oversized_archive_is_not_opened(self, tmp_path):
        with (
            zipfile.ZipFile(tmp_path / "bomb.docx", "w", zipfile.ZIP_DEFLATED) as archive,
            archive.open("word/document.xml", "w", force_zip64=True) as entry,
        ):
            for _ in range(510):
                entry.write(b"\0" * 1_000_000)
        with pytest.raises(DocumentError, match="unpacked"):
            read_source(tmp_path / "bomb.docx")

    def test_sheet_with_too_many_cells_is_refused(self, tmp_path):
        book = openpyxl.Workbook()
        book.active.cell(1, 16384, "far")
        for row in range(2, 15):
            book.active.cell(row, 1, "x")
        (tmp_path / "wide.xlsx").write_bytes(saved(book))
        with pytest.raises(DocumentError, match="cells"):
            read_source(tmp_path / "wide.xlsx")

    def test_other_kinds_are_not_read(self, tmp_path):
        (tmp_path / "a.exe").write_bytes(b"MZ")
        with pytest.raises(DocumentError, match="kind"):
            read_source(tmp_path / "a.exe")

    def test_missing_library_error_names_the_extra(self, tmp_path, monkeypatch):
        (tmp_path / "a.docx").write_bytes(word())
        monkeypatch.setitem(sys.modules, "docx", None)
        with pytest.raises(MissingReader, match=r"adjudge\[files\]"):
            read_source(tmp_path / "a.docx")


class TestRigorousBench:
    def test_example_is_read(self):
        dataset = rigorous.read(shipped("rigorous"), [])
        assert dataset.systems == ["heron", "plover"]
        assert [task.language for task in dataset.tasks.values()] == ["en", "zh"]
        cases = {(case.task.id, case.report.system): case for case in dataset.cases()}
        report = cases["1", "heron"].report
        assert (report.usage.total_tokens, report.usage.retrieved, len(report.citations)) == (46200, 17, 3)
        assert cases["2", "plover"].report.usage.total_tokens is None
        assert dataset.rejected == []

    def test_bad_lines_are_rejected_with_their_place(self, tmp_path):
        rows = ['{"uid": 1, "query": "q", "qsr": [], "fak": [], "fdk": [], "tsl": []}', '{"uid": 2}', "{"]
        (tmp_path / "DrBench.jsonl").write_text("\n".join(rows))
        (tmp_path / "a.jsonl").write_text('{"uid": 1, "text": "t"}\n{"uid": 1}\n')
        dataset = rigorous.read(tmp_path, [InputFile(tmp_path / "a.jsonl")])
        assert [(Path(r.file).name, r.line) for r in dataset.rejected] == [
            ("DrBench.jsonl", 2),
            ("DrBench.jsonl", 3),
            ("a.jsonl", 2),
        ]

    def test_empty_folder_is_an_error(self, tmp_path):
        with pytest.raises(FormatError, match="DrBench"):
            rigorous.read(tmp_path, [])


class TestDR3Eval:
    def read(self, folder, *reports):
        return dr3.read(folder, [InputFile(file) for file in reports])

    def test_example_is_read(self):
        dataset = self.read(shipped("dr3") / "datasets_en", *sorted(shipped("dr3").glob("results/*.jsonl")))
        assert list(dataset.tasks) == ["001@512k", "001@64k", "002"]
        assert dataset.systems == ["kestrel", "merlin"]
        case = next(
            case for case in dataset.cases() if case.task.id == "001@64k" and case.report.system == "kestrel"
        )
        gold = case.gold("dr3", Gold)
        assert [source.name for source in gold.user_files] == ["fuel-chart.png", "fuel.csv", "notes.md"]
        assert gold.user_files[0].media.type == "image/png"
        assert [page.role for page in gold.corpus] == ["supportive", "supportive", "distractor", "noise"]
        assert (gold.corpus_size, len(gold.checklist)) == ("64k", 4)
        assert case.report.citations[0].marker == "RAG-1"
        assert dataset.rejected == []

    def test_chinese_folder_name_sets_the_language(self, tmp_path):
        folder = tmp_path / "datasets_zh" / "7"
        folder.mkdir(parents=True)
        (folder / "task.json").write_text('{"query": "问题"}')
        (tmp_path / "a.jsonl").write_text('{"id": "7", "report": "r"}\n')
        dataset = self.read(tmp_path / "datasets_zh", tmp_path / "a.jsonl")
        assert (dataset.tasks["7"].language, len(dataset.reports)) == ("zh", 1)

    def test_unreadable_files_stay_required_and_links_are_ignored(self, tmp_path):
        files = tmp_path / "data" / "1" / "files"
        files.mkdir(parents=True)
        (files.parent / "task.json").write_text('{"query": "q"}')
        (files / "broken.docx").write_bytes(b"no")
        (tmp_path / "secret.txt").write_text("secret")
        (files / "link.txt").symlink_to(tmp_path / "secret.txt")
        (files / ".hidden").write_text("x")
        (tmp_path / "a.jsonl").write_text('{"id": "1", "report": "[Doc: ../../secret.txt]"}\n')
        dataset = self.read(tmp_path / "data", tmp_path / "a.jsonl")
        sources = next(dataset.cases()).gold("dr3", Gold).user_files
        assert [(source.name, source.text) for source in sources] == [("broken.docx", ""), ("link.txt", "")]
        assert [Path(rejected.file).name for rejected in dataset.rejected] == ["broken.docx", "link.txt"]

    def test_bad_tasks_and_pages_are_rejected(self, tmp_path):
        for name, content in (("1", '{"query": "q"}'), ("2", "{")):
            (tmp_path / name / "corpus").mkdir(parents=True)
            (tmp_path / name / "task.json").write_text(content)
        pages = [{"text": "t", "role": "noise"}, {"text": "t", "role": "lie"}]
        (tmp_path / "1/corpus/32k.jsonl").write_text("\n".join(map(json.dumps, pages)))
        (tmp_path / "a.jsonl").write_text('{"id": "1", "size": "32k", "report": "r"}\n')
        dataset = self.read(tmp_path, tmp_path / "a.jsonl")
        assert list(dataset.tasks) == ["1@32k"]
        assert [(Path(r.file).name, r.line) for r in dataset.rejected] == [("32k.jsonl", 2), ("task.json", 0)]

    def test_empty_folder_is_an_error(self, tmp_path):
        with pytest.raises(FormatError, match=r"task\.json"):
            self.read(tmp_path)
