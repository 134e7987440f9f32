"""A closed world of sources: the user's files, the pages of a corpus, and which of them a report cites.

Titles are matched by the rules of DR3-Eval's published code. Two names are the same if one contains the other, if the
second has 60 % of the first one's words, if both name one of `_BRANDS`, or if the Levenshtein distance is at most a
quarter of the longer one. A required title counts as cited if some name in brackets is the same, or has an abbreviation
of it, or if the title or its abbreviation occurs anywhere.

Time is linear in the report for given titles: of the names in brackets, the first `MAX_NAMES` are looked at.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Literal

import msgspec

from adjudge.judges import Context, Media
from adjudge.scoring.contract.case import Report
from adjudge.scoring.dr3_eval.citing import Cited, Label, read_cited
from adjudge.scoring.text.aside import aside, storable

MAX_NAMES = 1_000
_SHARED = 0.6
_ALIKE = 0.75
_SHORTEST = 5  # of two texts whose distance is taken

_SPACES = dict.fromkeys(
    map(ord, "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f"), " "
) | dict.fromkeys(range(0x2000, 0x200B), " ")
_WIDTHS = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)} | {0x3000: " "}
_QUOTES = dict.fromkeys(map(ord, "“”「」『』"), '"') | dict.fromkeys(map(ord, "‘’"), "'")
_ELLIPSIS = re.compile(r"\.{2,}|…+|。{2,}")
_MARKS = dict.fromkeys(map(ord, ",，.。!！?？;；:：-_[]【】()（）{}「」『』“”'"), " ")
_WORD = re.compile(r"[a-zA-Z]+")
_CHINESE = re.compile(r"[\u4e00-\u9fff]+")
_STOPWORDS = frozenset("的了是在和与这那有为以及") | frozenset(
    "the a an of to in for on with and or is are video audio image doc document file mp4 mp3 pdf jpg png".split()
)
_BRANDS = (
    *"bbc ted cnn nbc abc cbs fox npr pbs youtube vimeo bilibili netflix hbo disney discovery mit harvard".split(),
    *"stanford oxford cambridge google microsoft apple amazon facebook meta openai anthropic deepmind".split(),
    "national geographic",
    "history channel",
)

_ABBREVIATIONS = (
    re.compile(r"[A-Z][A-Z0-9\-]+[A-Z0-9]"),
    re.compile(r"\d+[A-Z\-]+[A-Z]+|[A-Z]+\-\d+[A-Z]+"),
    re.compile(r"[（(]([^）)]+)[）)]"),
)
_OPENINGS = tuple(
    (re.compile(rf"\[{kind}:\s*{opening}"), re.compile(closing))
    for kind in ("long_context", "source")
    for opening, closing in (("[\"']", "[\"']"), ("“", "”"))
)
_CHUNK = re.compile(r",\s*chunk\s*\d+$")
_PAGED = re.compile(r"\[([^\[\]]+\.(?:md|txt|pdf|docx?)),\s*第[\d\-]+页\]")
_IMAGE = re.compile(r"\[Image:\s*([^\[\]]+)\]")
_BRACKET = re.compile(r"\[([^\[\]]{4,})\]")
_NUMBERS = re.compile(r"[\d\s]+|[a-zA-Z]")  # or a single letter
_NOT_TITLES = ("注", "图", "表", "附录", "TODO", "NOTE", "WARNING", "TIP", "IMPORTANT")
_NO_REPORT = "No final answer"


class Title(msgspec.Struct, frozen=True, dict=True):
    """A title or name, and its forms in which the code compares."""

    text: str

    @cached_property
    def plain(self) -> str:
        """In lower case, of one width and with one kind of quotes."""
        return _single_spaced(self.text.translate(_SPACES | _WIDTHS | _QUOTES)).lower()

    @cached_property
    def bare(self) -> str:
        """Without marks."""
        return _single_spaced(_ELLIPSIS.sub("", self.plain).translate(_MARKS))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Words that tell something, and of Chinese each run and each character."""
        words = [word for word in _WORD.findall(self.plain) if len(word) > 1 and word not in _STOPWORDS]
        for run in _CHINESE.findall(self.plain):
            words += [run] if len(run) > 1 else []
            words += [character for character in run if character not in _STOPWORDS]
        return tuple(words)

    @cached_property
    def brands(self) -> tuple[str, ...]:
        """The brands that it names."""
        return tuple(brand for brand in _BRANDS if brand in self.plain)

    @cached_property
    def main(self) -> str:
        """The text before its first hyphen."""
        return Title(self.text.split("-")[0].strip()).plain

    @cached_property
    def abbreviations(self) -> tuple[str, ...]:
        """Its parts in capitals or in parentheses, in lower case."""
        found = (one for pattern in _ABBREVIATIONS for one in pattern.findall(self.text))
        return tuple(dict.fromkeys(one.lower() for one in found if len(one) >= 3))


def same_title(one: Title, other: Title) -> bool:
    """Whether `one` (a wanted title) is `other`, as permissively as the code says."""
    if not one.plain or not other.plain:
        return False
    if _within(one.plain, other.plain) or (one.bare and other.bare and _within(one.bare, other.bare)):
        return True
    if len(one.words) >= 2:
        shared = sum(word in other.plain for word in one.words)
        if shared / len(one.words) >= _SHARED:
            return True
    return any(brand in other.plain for brand in one.brands) or _spelled_alike(one.bare, other.bare)


def covered(text: str, titles: Sequence[str]) -> list[bool]:
    """Which of the required `titles` the report `text` cites."""
    if _NO_REPORT in text:
        return [False] * len(titles)
    names = [Title(name) for name in islice(_names(text), MAX_NAMES)]
    plain, lower = Title(text).plain, text.lower()

    def cited(title: Title) -> bool:
        if any(_cites(title, name) for name in names):
            return True
        if len(title.plain) >= 4 and title.plain in plain:
            return True
        return any(len(one) >= 4 and one in lower for one in title.abbreviations)

    return [cited(Title(title)) for title in titles]


def _cites(title: Title, name: Title) -> bool:
    if _within(title.plain, name.plain) or _within(title.main, name.plain):
        return True
    return any(one in name.plain for one in title.abbreviations) or same_title(title, name)


def _names(text: str) -> Iterator[str]:
    """The names in a report's brackets, without duplicates."""
    seen: set[str] = set()
    for name in _in_brackets(text):
        if name and name not in seen:
            seen.add(name)
            yield name


def _in_brackets(text: str) -> Iterator[str]:
    for opening, closing in _OPENINGS:
        for quoted in _quoted(text, opening, closing):
            yield _CHUNK.sub("", quoted).strip()
    for pattern in (_PAGED, _IMAGE):
        yield from (found[1].strip() for found in pattern.finditer(text))
    for found in _BRACKET.finditer(text):
        name = found[1].strip()
        kind = name.startswith(("long_context:", "source:", "Image:", *_NOT_TITLES))
        if not (kind or "(" in name or ")" in name or _NUMBERS.fullmatch(name)):
            yield name


def _quoted(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> Iterator[str]:
    """The text between each opening and the next closing; searched only once if there is none."""
    start = 0
    while (opened := opening.search(text, start)) is not None:
        closed = closing.search(text, opened.end())
        if closed is None:
            return
        if closed.start() > opened.end():
            yield text[opened.end() : closed.start()]
            start = closed.end()
        else:
            start = opened.end()


def _single_spaced(text: str) -> str:
    """`text` without spaces at its ends, and with one where there are several."""
    while "  " in text:
        text = text.replace("  ", " ")
    return text.strip(" ")


def _within(one: str, other: str) -> bool:
    return one in other or other in one


def _spelled_alike(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if len(short) < _SHORTEST or 1 - (len(long) - len(short)) / len(long) < _ALIKE:
        return False
    return 1 - _distance(short, long) / len(long) >= _ALIKE


def _distance(one: str, other: str) -> int:
    """The Levenshtein distance; a step for each character of `other`, with the column's differences in two numbers."""
    places: dict[str, int] = {}
    for place, character in enumerate(one):
        places[character] = places.get(character, 0) | 1 << place
    every, last, distance = (1 << len(one)) - 1, 1 << len(one) - 1, len(one)
    up, down = every, 0  # where the column rises and falls by one
    for character in other:
        equal = places.get(character, 0)
        across = (((equal & up) + up) ^ up) | equal
        rises, falls = down | ~(across | up) & every, up & across
        distance += bool(rises & last) - bool(falls & last)
        rises, falls = rises << 1 & every | 1, falls << 1 & every
        up, down = falls | ~(equal | down | rises) & every, rises & (equal | down)
    return distance


_DOCUMENTS = (".md", ".txt", ".pdf", ".docx", ".doc", ".pptx", ".ppt", ".xlsx", ".xls")

Role = Literal["user_file", "supportive", "distractor", "noise", "unlabelled"]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A user's file or a page of the corpus: its text, or what a judge must look at or listen to.

    `around` is the white space before and behind the text of a text file. A page `beyond` is not in this corpus.
    """

    name: str = ""
    title: str = ""
    url: str = ""
    text: str = ""
    media: Media | None = None
    role: Role = "user_file"
    around: tuple[str, str] = ("", "")
    beyond: bool = False

    @property
    def label(self) -> str:
        """The name shown to people and judges."""
        return self.name or self.title or self.url

    @property
    def required(self) -> bool:
        """Whether a good report cites it: user files and supportive pages."""
        return self.role in ("user_file", "supportive")

    def context(self, limit: int | None = None) -> Context:
        """The source as judges are shown it: its name, its text up to `limit` characters, its picture or sound."""
        media = () if self.media is None else (self.media,)
        return Context.of(*media, name=self.label, source=self.text[:limit])


class Sandbox:
    """The sources of one task, by their places in `sources`."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = tuple(sources)

    async def cited(self, report: Report) -> Cited:
        """The sources in the sandbox that `report` cites, long reports off the event loop. Raises Unread, PoolError."""
        labels = tuple(
            Label(storable(one.name), storable(one.title), storable(one.url), one.role != "user_file")
            for one in self.sources
        )
        citations = tuple(
            msgspec.structs.replace(
                one, url=storable(one.url), title=storable(one.title), marker=storable(one.marker)
            )
            for one in report.citations
        )
        return await aside(read_cited, storable(report.text), citations, labels)

    def coverage(self, cited: Cited) -> float | None:
        """Required sources that are cited over all required ones (DR3-Eval, citation coverage); None without one."""
        required = [place for place, source in enumerate(self.sources) if source.required]
        return sum(place in cited.sources for place in required) / len(required) if required else None

    @property
    def titles(self) -> tuple[str, ...]:
        """Sources the published code wants cited: titles of supportive pages, names of documents; no duplicates."""
        pages = [source.title for source in self.sources if source.role == "supportive"]
        files = [source.name for source in self.sources if source.role == "user_file"]
        documents = [name for name in files if name.lower().endswith(_DOCUMENTS)]
        return tuple(dict.fromkeys(storable(title) for title in [*pages, *documents] if title))

    async def code_coverage(self, report: Report) -> float | None:
        """The share of `titles` that `report` cites by the code's rule; None without one. Raises Unread, PoolError."""
        if not self.titles:
            return None
        found = await aside(covered, storable(report.text), list(self.titles))
        return sum(found) / len(found)
