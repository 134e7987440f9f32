"""What is kept of recent texts: no more characters than stated, and of no long text anything."""

import pytest

from adjudge.judges.remembering import Remembered, remembered
from adjudge.scoring.text import blocks, markup
from adjudge.scoring.text.citations import cited, parse
from adjudge.scoring.text.cleaning import clean_report


def reading(read: list[str]) -> Remembered[[], int]:
    """The length of a text, of which the last 100 characters are kept; `read` gets what is read."""

    @remembered(100)
    def length(text: str) -> int:
        read.append(text)
        return len(text)

    return length


def test_kept_texts_are_bounded_by_their_characters():
    read: list[str] = []
    length = reading(read)
    texts = [str(number) * 20 for number in range(10)]
    assert [length(text) for text in texts + texts[5:]] == [20] * 15
    assert read == texts
    length(texts[0])
    assert read == [*texts, texts[0]]


def test_text_above_a_quarter_of_the_room_is_not_kept():
    read: list[str] = []
    length = reading(read)
    assert [length("x" * size) for size in (25, 26, 26, 25)] == [25, 26, 26, 25]
    assert [len(text) for text in read] == [25, 26, 26]


def test_lines_of_a_report_are_read_once_for_all_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "The mill grinds oats [1].\n\n## References\n[1] T https://r.example/once\n"
    found = cited(text)
    for module, reader in ((markup, "in_markdown"), (blocks, "scan")):
        monkeypatch.delattr(module, reader)
    assert clean_report(text) == "The mill grinds oats."
    assert parse(text).triplets == found.triplets
