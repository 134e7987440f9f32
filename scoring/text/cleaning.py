"""Reports without their citation marks and reference lists, by rule or by the judge."""

import asyncio
import re
from io import StringIO
from itertools import chain, islice
from typing import Annotated

import msgspec

from adjudge.judges import Answer, Context, Question
from adjudge.judges.remembering import remembered
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Missing
from adjudge.scoring.text.aside import aside, storable
from adjudge.scoring.text.blocks import lines, report_lines
from adjudge.scoring.text.citation_marks import Labels, Mark, cut, may_hold_mark, pieces
from adjudge.scoring.text.citations import MAX_REFERENCES, labels_of, references_in
from adjudge.scoring.text.integrity import copied
from adjudge.scoring.text.markup import plain
from adjudge.scoring.text.sentences import LABEL_ONLY, LEFT_OVER, TITLES_BEHIND, names_sources

MIN_CLEAN_CHARS = 100
PIECE_CHARS = 3_000
MAX_PIECE_CHARS = 4_000
_KEPT_CHARS = 2_000_000  # of the texts whose clean form is kept

_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")

_TOO_LONG = ("judge_unparseable", "answer_truncated", "context_overflow")  # what half a piece may cure

_BEFORE_POINT = re.compile(r"[ \t](?<=\S[ \t])[ \t]{0,19}(?=[.,;!?，。；：！？、)）])")
_GAP = re.compile(r"[ \t](?<=\S[ \t])[ \t]{1,19}(?=\S)")
_BLANK_LINES = re.compile(r"\n{3,}")


@remembered(_KEPT_CHARS)
def clean_report(text: str) -> str:
    """`text` without citation marks, bare URLs, reference lists and footnotes; a link in a sentence leaves its title.

    Time and memory are linear in the text. Lone surrogates become question marks.
    """
    text = plain(storable(text))
    found = report_lines(text)
    listed = islice(references_in(found), MAX_REFERENCES)
    known = labels_of(listed, found)
    kept = StringIO()
    for line in found:
        if line.kind == "code":
            kept.write(f"{line.raw}\n")
        elif line.kind not in ("reference", "source"):
            cleaned = _clean_line(line.raw, known)
            if cleaned is not None:
                kept.write(f"{cleaned}\n")
    return _without_gaps(kept.getvalue())


def clean_beside(text: str, reference: str) -> tuple[str, float]:
    """A clean `reference`, and the share of the wording of the report `text` that is its own."""
    clean = clean_report(reference)
    return clean, copied(text, clean)


def _without_gaps(text: str) -> str:
    """`text` with at most one blank line between others, and none at its ends."""
    return (_BLANK_LINES.sub("\n\n", text) if "\n\n\n" in text else text).strip()


def _clean_line(raw: str, known: Labels) -> str | None:
    """A line without its marks; None if nothing but marks stood there."""
    if not may_hold_mark(raw):
        return raw
    bare, text = list[str](), list[str]()
    marked = titled = False
    before: str | Mark = ""
    found = chain(pieces(raw, known), [""])
    piece = next(found)
    for after in found:
        if isinstance(piece, str):
            bare.append(piece)
            text.append(piece)
        else:
            marked, titled = True, titled or bool(piece.title)
            text.append(_title(before, piece, after))
        before, piece = piece, after
    if not marked:
        return raw
    alone = LEFT_OVER.sub("", "".join(bare))
    if LABEL_ONLY.fullmatch(alone) and (not titled or any(map(str.isalpha, alone))):
        return None
    if names_sources(alone) and not any(map(str.isalnum, alone.replace("：", ":").partition(":")[2])):
        return None
    left = TITLES_BEHIND.sub("", LEFT_OVER.sub("", "".join(text)))
    indent = len(left) - len(left.lstrip())
    return left[:indent] + _GAP.sub(" ", _BEFORE_POINT.sub("", left[indent:]))


def _title(before: str | Mark, mark: Mark, after: str | Mark) -> str:
    """A link's title, or nothing for a link that stands alone in parentheses: that one only names a source."""
    alone = (
        isinstance(before, str)
        and isinstance(after, str)
        and before.endswith(("(", "（"))
        and after.startswith((")", "）"))
    )
    return "" if alone else mark.title


class CleanText(Answer, frozen=True, kw_only=True):
    """A piece of a report without its citation marks."""

    text: Annotated[str, msgspec.Meta(max_length=MAX_PIECE_CHARS)]


class Clean(Question[CleanText], frozen=True, kw_only=True):
    """The report's piece in the context, word for word but without citation marks."""

    words = "a report without its citation marks"
    prompt = "race_clean"
    answer = CleanText

    def lexical(self) -> CleanText:
        """The text after the rules."""
        return CleanText(text=clean_report(self.context["piece"])[:MAX_PIECE_CHARS])


async def judge_clean(text: str, language: str, tools: Tools) -> str | Missing:
    """`text` cleaned by the judge, piece by piece; reference lists go by rule.

    A cleaned piece of at least 100 characters is valid; else its two halves, cut at a sentence end, are asked once
    more. A piece that is short in itself is valid at half of what the rules leave.
    """
    body = await aside(without_lists, storable(text))
    whole = _rejoined(
        await asyncio.gather(*(_clean_piece(piece, language, tools) for piece in cut(body, PIECE_CHARS)))
    )
    return whole if isinstance(whole, Missing) else _without_gaps(whole)


def without_lists(text: str) -> str:
    """`text` as plain Markdown without its reference lists."""
    kept = StringIO()
    for line in lines(plain(text)):
        if line.kind != "reference":
            kept.write(f"{line.raw}\n")
    return kept.getvalue()[:-1]


async def _clean_piece(piece: str, language: str, tools: Tools) -> str | Missing:
    whole = await _ask_clean(piece, language, tools)
    if isinstance(whole, str) or whole.reason not in _TOO_LONG:
        return whole
    end = _SENTENCE_END.search(piece, len(piece) // 2)
    middle = end.end() if end else len(piece) // 2
    halves = (_ask_clean(half, language, tools) for half in (piece[:middle], piece[middle:]))
    return _rejoined(await asyncio.gather(*halves))


def _rejoined(cleaned: list[str | Missing]) -> str | Missing:
    texts = [piece for piece in cleaned if isinstance(piece, str)]
    missing = next((piece for piece in cleaned if isinstance(piece, Missing)), None)
    return missing or "\n".join(texts)


async def _ask_clean(piece: str, language: str, tools: Tools) -> str | Missing:
    judgment = await tools.ask(Clean(context=Context.of(piece=piece), language=language))
    if judgment.answer is None:
        return Missing(judgment.reason or "judge_unparseable")
    enough = min(MIN_CLEAN_CHARS, len(clean_report(piece)) // 2)
    cleaned = judgment.answer.text.strip()
    return cleaned if len(cleaned) >= enough else Missing("judge_unparseable")
