"""Citation marks inside a line of text: `text 15`, `[15]`, `[15†L10][5L23]`, `【15】`, `[title](url)`, bare URLs, DOIs.

Time and memory are linear in the text: repetitions are bounded, ambiguous forms are read in one way (atomic groups),
brackets are paired with a stack, and a text of more than `MAX_PIECE` characters is read in pieces, one after the other.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator
from functools import lru_cache
from html import unescape
from io import StringIO
from itertools import chain
from typing import Literal, NamedTuple

from adjudge.scoring.text.titles import LIKELY, strength

_NORMALISED = 1_000  # characters at once
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")


def split(text: str, size: int) -> Iterator[str]:
    """`text` in pieces of at most `size` characters, cut at line ends, else sentence ends, else anywhere."""
    start = 0
    while len(text) - start > size:
        window = text[start : start + size]
        end = max(window.rfind("\n", size // 2), 0) or _last_end(window, size // 2) or size
        yield window[:end]
        start += end
    if start < len(text):
        yield text[start:] if start else text


def cut(text: str, size: int) -> list[str]:
    """The pieces of `split`, without a last one that is blank; at least one."""
    found = list(split(text, size)) or [text]
    return found[:-1] if len(found) > 1 and not found[-1].strip() else found


def compatible(text: str, form: Literal["NFKC", "NFD"] = "NFKC") -> str:
    """`text` in Unicode's compatibility form, or another, and cut off where it grows to twice its length.

    By pieces: sorting a run of combining marks takes the square of its length. One character may become eighteen.
    """
    if text.isascii():
        return text
    found = StringIO()
    for piece in split(text, _NORMALISED):
        found.write(unicodedata.normalize(form, piece))
        if found.tell() > 2 * len(text) + _NORMALISED:
            break
    return found.getvalue()


def _last_end(window: str, start: int) -> int:
    return max((match.end() for match in _SENTENCE_END.finditer(window, start)), default=0)


MAX_URL = 8192
MAX_LINK_TITLE = 1000
MAX_RANGE = 50
MAX_PIECE = 20_000

_PAIRS = re.compile(r"\\.|[()\[\]]", re.DOTALL)
SCHEME = r"(?:[hH][tT][tT][pP][sS]?://|[wW](?<![\w/.@-].)[wW][wW]\.(?=[\w-]{1,63}\.[^\W\d]))"
"""What an address in a text begins with; in both cases, for speed."""
_SLOT = r"[a-zA-Z_][\w.-]"
"""What the name of something to be filled in begins with, in braces: "/users/{user_id}"."""
_SLOT_ENDS = "".join(rf"(?<!\{{{_SLOT}{{{length}}}\}})" for length in range(24))
ADDRESS_END = (
    rf"(?:\{{(?!{_SLOT}{{0,23}}\}})|\}}{_SLOT_ENDS}|[\s<>\"`|^"
    r"（）【】「」『』《》〈〉“”‘’«»‹›„،؛؟।，。；：！？、…　]|\\(?![!#$%&*+,./=?@_~-])|\Z)"
)
"""What an address in a text ends before."""
_TARGET = re.compile(
    r"<?(?:(?!(?:doi|arxiv|mailto|tel|sms):)[a-z][a-z0-9+.-]{1,20}:(?=[^\s<>])|www\."
    r"|//(?=[\w-]{1,63}\.[\w-])|[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}(?=[/?#>]|$))",
    re.IGNORECASE,
)
"""What a link cites: an address of any scheme, but for those of people; identifiers are read as they are anywhere."""
_ELSEWHERE = re.compile(r"(?!https?:)[a-z][a-z0-9+.-]{1,20}:", re.IGNORECASE)
_NOWHERE = ("",)  # the labels of a link without an address: no list defines one

# Atomic: what follows a dagger may itself look like numbers, and each of them would double the ways to read the rest.
_ONE = r"(?>\^?\d{1,4}(?:†[^\[\]【】［］〔〕\n,，;；]{0,80}|L\d{1,6}(?:-L?\d{1,6}(?![\dL†]))?|summary)?)"
_BETWEEN = r" {0,2}(?:[,，、;；–—~|&-]|(?:and|und|et|y|和|及) )(?:and |und )? {0,2}"
_NUMBERS = rf"(?>{_ONE}(?>{_BETWEEN}{_ONE}){{0,40}})"
_SEE = r"(?:(?:see|cf\.?|siehe|vgl\.?|voir|véase|vedi) )?"
_WORD = (
    rf"(?:{_SEE}(?:citations?|cite|sources?|refs?|references?|来源|参考|参考文献|文献|引用)\.? ?[:：]? ?#?)?"
)
_SEEN = re.compile(r"^(?:see also|see|cf\.?|siehe|vgl\.?|voir|véase|vedi|ver|см\.) |^#(?=\d)", re.IGNORECASE)
_WORDED = re.compile(rf"{_WORD}(\d{{1,4}})", re.IGNORECASE)
_SIGNS = r"\\\[【［〔〖<¹²³⁴-⁹①-⑳㉑-㉟"
_TOKEN = re.compile(
    # What a mark can begin with: the alternatives are not tried elsewhere.
    rf"(?=[{_SIGNS}`(（adhw])(?=[^adhw]|arxiv|doi|http|www\.)(?:"
    r"(?P<code>`(?!https?://(?!localhost|127\.|0\.0\.0\.0)[^\s`]{1,300}`)[^`\n\[][^`\n]{0,300}`)"
    rf"|(?P<bracket>\\?[\[【［〔〖] ?{_WORD}(?P<numbers>{_NUMBERS}) ?\\?[\]】］〕〗])"
    r"|(?P<foot>\[\^(?P<note>[\w.:-]{1,40})\^?\])"
    r"|(?P<named>\[(?P<title>[^\[\]\n]{1,300})\]\[(?P<to>[^\[\]\n]{1,60})\])"
    r"|(?P<turn>【(?P<answer>(?:turn\d{1,4}[a-z]{1,12}|oaicite:)\d{1,4}|\d{1,3}:\d{1,3}†[^【】\n]{0,80})】)"
    r"|(?P<worded>\\?[\[【［〔〖](?P<words>[^\[\]【】［］〔〕〖〗\n]{1,200})\\?[\]】］〕〗])"
    r"|(?P<round>[(（](?P<inside>[^()（）\n]{1,300})[)）])"
    r"|(?P<circled>[①-⑳㉑-㉟])"
    r"|(?P<sup><sup> ?\\?\[?(?P<raised>\d{1,3}(?: ?, ?\d{1,3}){0,20})\\?\]? ?</sup>)"
    r"|(?P<small>(?:(?<![\d⁰¹²³⁴-⁹⁻])|(?<=[ (](?:19|20)\d\d))"
    r"[¹²³⁴-⁹][⁰¹²³⁴-⁹]{0,2}(?:[,⸴˒⁻][¹²³⁴-⁹][⁰¹²³⁴-⁹]{0,2}){0,9}(?![⁰¹²³⁴-⁹⁻⁺]))"
    r"|(?P<arxiv>\barxiv: ?(?P<paper>\d{4}\.\d{4,5}(?:v\d{1,2})?|[a-z-]{2,12}(?:\.[a-z]{2})?/\d{7}))"
    r"|(?P<doi>\bdoi: ?(?P<name>10\.\d{4,9}/[^\s<>\"\]）】，。；]{1,300}))"
    rf"|(?P<url>{SCHEME}(?!{ADDRESS_END}).+?(?={ADDRESS_END})))",
    re.IGNORECASE,
)
# A text without any of these has no token. Most lines have none, and this check takes a tenth of the time.
_SIGN = re.compile(f"[{_SIGNS}]")
_ASCII_SIGNS = rb"\[<"
_SHORT = 50  # characters that are searched as quickly
_ASCII_SIGN = re.compile(r"[\d\\\[<]|http|www\.|arx|doi", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_FIGURES = re.compile(r"\d{1,3}")
_FIGURE = re.compile(r"\d+")
_LAST_WORD = re.compile(r"[^\W\d_]{1,40}$")
_MAX_WORD = 41  # characters, with the space behind it
_STOPS = tuple(".!?。！？")
_MORE = re.compile(r",? (?:and|or|und|oder|et|ou|y|o)\b")  # a list of numbers goes on
_ASCII_DIGITS = b"0123456789"
_UNIT = re.compile(r"(?:^|[^a-zA-Z])(?:[kcmdnµμ]?m|ft|in|yd|mi|s|kg|R|CO|x|χ)$")
_POWER = re.compile(r"(?<![\d.,])10$")
_MAX_NAME = 60
_POWERS = frozenset(("2", "3"))
_VARIABLE = re.compile(r"(?<![^\W\d_])[Δδ∂]?[A-Za-zα-ωΑ-Ω]$")
_BASE = re.compile(r"(?:(?<![12]\d\d)\d|[)\]}])$")  # a number that is no year, or a term
_PLAIN = re.compile(
    # a sentence, a clause or a table's cell ends behind it
    r"(?:(?<=[^\W\d_] )(?P<worded>)|(?<=[)）\"”*] )|(?<=[a-z)）\"”][.!?])|(?<=[。！？]))"
    r"(?P<number>\d{1,3}(?:(?:,? |,(?!\d{3}))\d{1,3}){0,5})(?=\s*(?:$|\|)|[.!?](?:\s|$)|[。！？；]|, [a-z]{2})"
    # after the full stop, with the next sentence behind it
    r"|(?<=[a-z\d%)）\"”*][.!?] )(?P<after>\d{1,3})(?=\s*(?:$|\|)|\s+[A-Z“\"*])"
    # close behind the full stop, but neither a decimal nor the number of a figure
    r"|(?:(?<=[a-zA-Z]{3}[.!?])(?<!fig[.])(?<!vol[.])(?<!sec[.])(?<!art[.])|(?<=[%)）”\"\]*}][.!?])"
    r"|(?<=[ (][12]\d{3}[.!?])|(?<=[ (][A-Z]{2}[.!?])"
    r"|(?<= (?:am|as|at|be|by|do|go|he|if|in|is|it|me|my|of|on|or|so|to|up|us|we)[.!?]))"
    r"(?P<tight>\d{1,3})(?=\s*(?:$|\|)|\s+[A-Z“‘\"'*\[])"
    r"|(?<=[。！？])(?P<wide>\d{1,3})(?=[ぁ-ヿ一-鿿가-힣“「]|[A-Z][a-z])(?![年月日号个种项次倍位名家条类款点级层岁つ人本回件社])"
    # close behind a word, where a raised number lost its height
    r"|(?:(?<=[^\W\d_]{3})|(?<=[)）”\"]))(?P<glued>\d{1,3})(?=[.,;:!?)）。，；：]{1,2}(?:\s|$)|\s*(?:$|\|))"
)
# Words after which a number is the word's own: quantities, dates, and things that are numbered.
_TAKES_NUMBER = frozenset(
    re.findall(
        r"\w+",
        """
        a about above act after age aged all almost amendment an and another any apollo appendix approximately april
        are around article as at august averaged be before below between book box by category chapter class column
        covid day december down each equal equals equation every exactly exhibit february figure first for from game
        goal grade group has have hour hours id if in into is item its january july june just last layer least less
        level line lines march may model month more most nearly no november number numbers october of on one only or
        over page pages panel part past percent phase plus point priority question quarter rank ranked reached rule
        season section september sdg session since some stage standard step table task than that the their these
        this those tier title to top total totaled totalled type under unit until up version vol volume was week
        weeks were which windows with within year years zone
        """,
    )
)
_CHINESE_TAKES_NUMBER = frozenset(
    "第约共为达有了是到至仅近超逾占得均前后每图表章节条款版级类期届号于在和与或过增减升降"
)
_NEAR = 60  # characters in front of a mark that tell what it is
_OUTER = ("named", "worded", "round")
_ROUND = re.compile(r" ?\d{1,3}(?: ?[,，;；、] ?\d{1,3}){0,20} ?")
SMALL_SIGNS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⸴˒"
SMALL = str.maketrans(SMALL_SIGNS, "0123456789-,,")

# In front of parentheses that go on with it: a function's name, an item's number, a journal's volume, a law's article.
_IN_NAME = re.compile(
    r"(?:(?<![^\W\d_])[A-Za-z]|\d[\s*_]{0,2};\s?\d{1,4}|\b[Vv]ol\.? ?\d{1,4}"
    r"|(?:\b(?:[Aa]rt(?:icles?|ikel|ículo|\.)?|[Ss]ec(?:tions?|\.)|[Rr]ules?|[Cc]lauses?|[Rr]ecitals?)|§)"
    r" ?\d{1,4}[a-z]?)$"
)
_WORKS = re.compile(r"[;；]")
_FRONT = re.compile(r"([^\W\d_]{1,20}|#|№)[.:：]{0,2}[ _-]?")
# A place in a work: a word or a sign and a number.
_PLACE = re.compile(
    r"\s{0,2}(?:[^\W\d_]|[§¶])[^,;]{0,30}\d[\d\w.–-]{0,10}(?: ?ff?\.)?\s{0,2}|\s{0,2}第\d{1,5}\w{1,3}"
)
_PLACE_BEHIND = re.compile(r"[:：]\s?(?:[^\W\d_.]{1,10}\.? ?|§ ?)?\d{1,5}(?:[–-]\d{1,5})?$")
_HOST = re.compile(r"(?:https?://)?[\[\w%]", re.IGNORECASE)
_SPACES = re.compile(r"\s*")
_TRAILING = ".,;:!?'*_~\"…$"
_TRAILING_SIGNS = _TRAILING + "\\\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"))
_ESCAPED = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[a-zA-Z][a-zA-Z\d]{1,31});")
_MAX_ENCODINGS = 3  # how many times over an address may have been written as HTML

_MAX_AUTHORS = 300  # characters of an entry within which its year stands
_AUTHOR = re.compile(r"[\s*_\"“\[(]{0,8}([^\W\d_][\w'’-]{0,40})")
_YEAR = re.compile(r"(?<![\w/.-])(?:(?:1[5-9]|20)\d\d[a-z]?|n\.d\.?|o\.J\.?)(?![\w/-])")
_SURNAME = re.compile(r"[\s*_\"“\[(]{0,8}([^\W\d_][\w'’-]{0,40}), (?=[^\W\d_])")
# "Okafor 12", "Brandt and Li 44-45", "qtd. in Okafor 12": an author and a page.
_AUTHOR_PAGE = re.compile(
    r"\s?(?:(?:qtd\. in|see|cf\.) )?(?P<author>[^\W\d_][\w'’-]{0,40})(?: (?:and|&) [^\W\d_][\w'’-]{0,40}| et al\.?)?"
    r" \d{1,4}(?:[-–]\d{1,4})?\s?"
)
_AUTHOR_WORD = re.compile(r"[^\W\d_][\w'’-]{0,40}")
_SEPARATED = re.compile(r"\s{0,3}(?:[,;，；、&]|(?<=\s)(?:and|und|et|y|和|及)(?=\s))\s{0,3}")
_AT_END = re.compile(
    r"[\s*_]*+(?>(?:[(（]\d{1,3}[)）][\s*_]{0,4}+){0,20})(?:[.,;:!?。，；：！？、)）|\n।॥؟۔،؛]|$)"
)
_LETTER_NEXT = re.compile(r"[a-zA-Z\u00c0-\u024f\u0370-\u03ff]")
_ENDED = re.compile(r"[.!?。！？][\"'”’)）]{0,2}$")
_TEXT_FRAGMENT = re.compile(r"#?:~:text=.*$", re.DOTALL)


class Mark(NamedTuple):
    """A citation mark: the labels it gives, or the `url` it links to; a link's `title` or ""; how it is written."""

    labels: tuple[str, ...] = ()
    url: str = ""
    title: str = ""
    raw: str = ""

    @property
    def is_dead(self) -> bool:
        """Whether its link leads to no page of the web."""
        return self.labels == _NOWHERE or _ELSEWHERE.match(self.url) is not None

    @property
    def is_button(self) -> bool:
        """Whether its link is such as those are by which a page is used: one of a script, of nothing, or a picture."""
        return self.labels == _NOWHERE or self.url[:11].lower() == "javascript:" or self.raw[:3] == "[!["


_Span = tuple[int, int, Mark]  # where a mark begins and ends


def exact_url(url: str) -> str:
    """`url` as it was meant, where it is known where it ends: the target of a link, a field of a file.

    Escapes and entities are the characters that they stand for (CommonMark 0.31, 2.4 and 2.5), invisible characters and
    text fragments (`#:~:text=`) are cut.
    """
    url = _literal(url.strip().strip("<>"))
    return _TEXT_FRAGMENT.sub("", url) if ":~:" in url else url


def clean_url(url: str) -> str:
    """`exact_url` of an address in prose, without what follows it there: punctuation, a possessive."""
    url = exact_url(url)
    return url[: _trimmed(url)].removesuffix("'s").removesuffix("’s")


def _trimmed(url: str) -> int:
    """Where a URL ends that has punctuation of the prose behind it."""
    if url[-1:].isalnum() or url[-1:] == "/":  # most, told by a glance
        return len(url)
    opened = {")": url.count("(") - url.count(")"), "]": url.count("[") - url.count("]")}
    end = len(url)
    while end:
        last = url[end - 1]
        if last in opened and opened[last] < 0:
            opened[last] += 1
        elif last not in _TRAILING_SIGNS:
            break
        end -= 1
    return end


def _literal(url: str) -> str:
    """`url` without escapes, entities and invisible characters."""
    if not url.isascii():
        url = url.translate(_INVISIBLE)
    if "\\" in url:
        url = _ESCAPED.sub("", url)
    for _ in range(_MAX_ENCODINGS if "&" in url else 0):
        url = _ENTITY.sub(lambda found: unescape(found[0]), url)
    return url


def label(text: str) -> str:
    """A reference's label in the one spelling that marks and references are compared in."""
    worded = None if text.isdecimal() else _WORDED.fullmatch(text)  # quickly: most labels are numbers
    text = worded[1] if worded else text
    return str(int(text)) if text.isdecimal() and len(text) < 10 else text.casefold()


def author_year(reference: str) -> str:
    """The label of an entry that begins with its author and gives its year; "" for any other."""
    author, year = _AUTHOR.match(reference), _YEAR.search(reference, 0, _MAX_AUTHORS)
    return f"{author[1].casefold()} {year[0].casefold()}" if author and year else ""


def author_alone(reference: str) -> str:
    """The label of an entry that begins with its author ("Okafor, Ngozi"), as pages are cited by; "" for any other."""
    author = _SURNAME.match(reference)
    return f"{author[1].casefold()} p." if author else ""


def may_hold_mark(text: str) -> bool:
    """Whether `pieces` can find a mark in `text`; most lines hold none, and this takes a tenth of the time."""
    if len(text) < _SHORT and text.isascii():
        return _ASCII_SIGN.search(text) is not None
    return _has_any(text, _ASCII_DIGITS, _DIGIT) or _may_hold_token(text)


def _has_any(text: str, ascii: bytes, every: re.Pattern[str]) -> bool:
    """Whether `every` finds a character in `text`; in a text of ASCII it finds those of `ascii`.

    Deleting these from the bytes of the text takes a tenth of the time of a search that finds none.
    """
    if not text.isascii():
        return every.search(text) is not None
    raw = text.encode()
    return len(raw.translate(None, ascii)) < len(raw)


class Labels(NamedTuple):
    """The labels that a report's references define.

    `bare` are those that may stand without square brackets, where a number might as well be a figure: none, if the
    report has marks in brackets. `plain` if they may stand without any sign at all, `glued` if close behind words too.
    `words` may stand in front of them. `powers` if a raised 2 or 3 behind a number is no mark, as in a report without a
    raised 1, and `coded` if an address in code is one. `close` may stand close behind a full stop beside marks in
    brackets.
    """

    known: Collection[str] = ()
    bare: Collection[str] = ()
    plain: bool = True
    words: Collection[str] = ()
    glued: bool = False
    powers: bool = False
    coded: bool = True
    close: Collection[str] = ()


def pieces(text: str, labels: Labels) -> Iterator[str | Mark]:
    """`text` cut into literal strings and the marks between them."""
    if len(text) <= MAX_PIECE:
        return _pieces(text, labels)
    return chain.from_iterable(_pieces(part, labels) for part in split(text, MAX_PIECE))


def _pieces(text: str, known: Labels) -> Iterator[str | Mark]:
    position = 0
    for start, end, mark in _spans(text, known):
        if start > position:
            yield text[position:start]
        yield Mark(mark.labels, mark.url, mark.title, text[start:end])
        position = end
    if position < len(text):
        yield text[position:]


def _spans(text: str, known: Labels) -> Iterator[_Span]:
    """All marks in order, none inside another; a link takes precedence over what is inside it."""
    position = 0
    for link in _links(text, known.known) if "](" in text else ():
        start, end, _ = link
        yield from _tokens(text, position, start, known)
        yield link
        position = end
    yield from _tokens(text, position, len(text), known)


def _links(text: str, known: Collection[str]) -> Iterator[_Span]:
    """Markdown links that leave the report, and images, outermost first."""
    end = 0
    for start, middle, stop in sorted(_bracketed(text)):
        mark = _link_mark(text, start, middle, stop, known) if start >= end else None
        if start >= end and text[start - 1 : start] == "!":
            start, mark = start - 1, Mark(title=text[start + 1 : middle])
        if mark is not None:
            end = stop + 1
            yield start, end, mark


def _bracketed(text: str) -> Iterator[tuple[int, int, int]]:
    """Where a title and an address in brackets stand: `[`, `]` and `)`."""
    closing = _closing_parentheses(text)
    opened: list[int] = []
    for match in _PAIRS.finditer(text):
        if match[0] == "[":
            opened.append(match.start())
        elif match[0] == "]" and opened:
            start = opened.pop()
            end = closing.get(match.end(), 0)
            if end and match.start() - start <= MAX_LINK_TITLE and end - match.end() <= MAX_URL + 200:
                yield start, match.start(), end


def _closing_parentheses(text: str) -> dict[int, int]:
    closing: dict[int, int] = {}
    opened: list[int] = []
    for match in _PAIRS.finditer(text):
        if match[0] == "(":
            opened.append(match.start())
        elif match[0] == ")" and opened:
            closing[opened.pop()] = match.start()
    return closing


def _target(text: str, start: int, end: int) -> str:
    """The target of a link, without the tooltip; "" for anything but a URL or a place in the report."""
    if text.find("](", start, end) >= 0:
        return ""
    url, *tooltip = text[start:end].strip().split(maxsplit=1) or [""]
    if tooltip and (tooltip[0][0] not in "\"'(" or tooltip[0].rstrip()[-1] not in "\"')"):
        return ""
    return url if url.startswith("#") or leads_out(url) else ""


# The words of a link that say nothing: signs, a picture, the address itself.
_WORDLESS = re.compile(
    r"[\W_]*|!\[[^\[\]]{0,300}\]\([^\s()]{1,2000}\)|(?:https?://|www\.)[^\s\[\]]{1,8192}",
    re.IGNORECASE,
)


def leads_out(target: str) -> bool:
    """Whether a link to `target` cites an address of any scheme, rather than a place in the report or people."""
    return _TARGET.match(target) is not None


def _link_mark(text: str, start: int, middle: int, stop: int, known: Collection[str]) -> Mark | None:
    """A link as a mark, of a label if its title is only a number, or one that is `known` where it leads to no page.

    Left out are links to a place in the report or to people, and in code those that lead to no page. One without an
    address leads nowhere.
    """
    title, target, before = text[start + 1 : middle], _target(text, middle + 2, stop), text[start - 1 : start]
    inner = title.strip("[]【】^\\ ")
    number = inner.translate(SMALL)
    labels = (label(number),) if number.isdecimal() and len(number) <= 4 else ()
    if target.startswith("#"):
        return Mark(labels) if labels else None
    if target:
        says = not labels and _WORDLESS.fullmatch(title) is None
        mark = Mark(labels, exact_url(_with_scheme(target)), title if says else "")
    elif inner and before != "`" and not before.isalnum() and not text[middle + 2 : stop].strip(" <>"):
        mark = Mark(labels or _NOWHERE, title="" if labels else title)
    else:
        return None
    if mark.is_dead and label(inner) in known:
        return mark._replace(labels=(label(inner),), title="")
    return None if mark.is_dead and (before == "`" or not inner) else mark


def _with_scheme(url: str) -> str:
    return f"https://{url.lstrip('/')}" if url[:4].lower() == "www." or url[:2] == "//" else url


def _tokens(text: str, start: int, end: int, known: Labels) -> Iterator[_Span]:
    position = start
    bare = (known.bare and known.plain) or known.close
    part = text[start:end]
    may_hold = len(part) < _SHORT or "(" in part or "（" in part or _may_hold_token(part)
    searched = start if may_hold else end
    while match := _TOKEN.search(text, searched, end):
        found = _mark(match, known)
        if found is None:
            # What a bracket holds may be a mark of its own; what code holds is none.
            searched = match.start() + 1 if match.lastgroup in _OUTER else match.end()
            continue
        mark, stop = found
        begin = match.start()
        if bare and position < begin:
            yield from _plain_numbers(text, position, begin, known)
        yield begin, stop, mark
        position = searched = stop
    if bare:
        yield from _plain_numbers(text, position, end, known)


def _may_hold_token(text: str) -> bool:
    lower = text.lower()
    if "http" in lower or "www." in lower or "arx" in lower or "doi" in lower or "doı" in lower:
        return True  # ignoring case takes ı for i
    return _has_any(text, _ASCII_SIGNS, _SIGN)


def _address_end(match: re.Match[str]) -> int:
    """Where an address ends: it gives back the punctuation that follows it, but keeps its text fragment."""
    address = match["url"] or match["name"]
    return match.end() if ":~:text=" in address else match.end() - len(address) + _trimmed(address)


def _mark(match: re.Match[str], known: Labels) -> tuple[Mark, int] | None:
    """The mark of a token, and where it ends."""
    kind = match.lastgroup
    if kind == "url":
        if not _HOST.match(match["url"]):  # a form to be filled in: "https://..."
            return None
        if not (known.coded or _is_cited(match)):
            return None
        return Mark(url=_with_scheme(clean_url(match["url"]))), _address_end(match)
    if kind == "doi":
        return Mark(url=f"https://doi.org/{clean_url(match['name'])}"), _address_end(match)
    mark, end = None, match.end()
    if kind == "arxiv":
        mark = Mark(url=f"https://arxiv.org/abs/{match['paper']}")
    elif kind == "foot":
        mark = Mark((label(match["note"]),))
    elif kind == "turn":
        mark = Mark((match["answer"],))
    elif kind == "named":
        title = _worded(match["title"].strip("^ "), known.known, known.words)
        to = label(match["to"].strip("^ "))
        if title:
            mark, end = Mark(title), match.end("title") + 1
        elif to in known.known:
            mark = Mark((to,), title=match["title"])
    elif kind == "worded":
        words = _worded(match["words"], known.known, known.words)
        mark = Mark(words) if words else None
    elif kind == "round":
        mark = _rounded(match, known)
    elif kind == "circled":
        circled = _CIRCLED[match["circled"]]
        mark = circled if circled.labels[0] in known.bare and _follows_text(match) else None
    elif kind == "small":
        mark = _raised(match, known)
    elif kind == "bracket" or (kind == "sup" and not _is_figure(match)):
        labels = _labels(match["numbers"] or match["raised"], known.known)
        mark = Mark(labels) if labels and not (kind == "sup" and _is_power(match, labels, known)) else None
    return (mark, end) if mark else None


def _follows_text(match: re.Match[str]) -> bool:
    """Whether a circled number stands behind what it is the mark of, and not in front of what it counts."""
    before = _before(match)
    before = before.rpartition("\n")[2] if "\n" in before else before
    if not before.strip(" |>*-"):
        return False
    if _AT_END.match(match.string, match.end()):
        return True
    return before[-1] not in _OPENS and before.rstrip(_CIRCLED_SIGNS)[-1:] not in _COUNTED


_CIRCLED = {
    sign: Mark((str(int(unicodedata.numeric(sign))),))
    for sign in "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳㉑㉒㉓㉔㉕㉖㉗㉘㉙㉚㉛㉜㉝㉞㉟"
}
_CIRCLED_SIGNS = "".join(_CIRCLED)
_COUNTED = frozenset(
    "向案骤段景项型径图表第类"
)  # Chinese words for what a report itself numbers end so: "方向②④"
_OPENS = ' \t+|(（[：:，,、；;“"/=→'


def _is_cited(match: re.Match[str]) -> bool:
    """Whether an address is none of a program's, in code: it stands in none, in parentheses, or behind "Source:"."""
    line = match.string[max(0, match.start() - _MAX_NAME) : match.start()].rpartition("\n")[2]
    if not line.endswith("`"):
        return True
    before = line[:-1].rstrip(" *_")
    return (
        before.endswith((" (", "（"))
        or before == "("
        or (before.endswith((":", "：")) and strength(before.strip(" \t>*_-:：")) >= LIKELY)
    )


def _before(match: re.Match[str]) -> str:
    """The few words in front of a token."""
    return match.string[max(0, match.start() - _NEAR) : match.start()]


def _of_known(labels: tuple[str, ...], known: Collection[str]) -> Mark | None:
    return Mark(labels) if labels and all(label in known for label in labels) else None


def _raised(match: re.Match[str], known: Labels) -> Mark | None:
    """A raised number that is no unit's, ion's or isotope's."""
    if _is_figure(match):
        return None
    labels = _labels(match["small"].translate(SMALL), known.known)
    return None if _is_power(match, labels, known) else _of_known(labels, known.known)


def _is_power(match: re.Match[str], labels: tuple[str, ...], known: Labels) -> bool:
    """Whether a raised 2 or 3 is an exponent: that of a variable, or in a report of powers that of a number or a term.

    Any is in such a report if its marks stand in brackets.
    """
    if not _POWERS.issuperset(labels):
        return False
    before = _before(match)
    is_of_number = known.powers and (not known.bare or _BASE.search(before) is not None)
    return is_of_number or _VARIABLE.search(before) is not None


def _is_figure(match: re.Match[str]) -> bool:
    """Whether a raised number belongs to a unit, a power of ten or an isotope."""
    before = _before(match)
    behind = _LETTER_NEXT.match(match.string, match.end()) and not _ENDED.search(before)
    return bool(behind or _UNIT.search(before) or _POWER.search(before))


def _worded(inside: str, known: Collection[str], words: Collection[str]) -> tuple[str, ...]:
    """The labels in a bracket, with one of `words` in front or a place in the work behind: "Page 3", "3, p. 12"."""
    found: list[str] = []
    for part in _WORKS.split(inside):
        work = False  # whether what precedes the comma is a work
        for piece in _SEPARATED.split(part.strip()):
            name = _name_of(piece.strip("^ \\"), known, words)
            if name:
                found.append(name)
                work = True
            elif not work or not _PLACE.fullmatch(piece):
                return ()
    return tuple(dict.fromkeys(found))


def _name_of(piece: str, known: Collection[str], words: Collection[str]) -> str:
    """The label that `piece` is, or begins or ends with; "" if it is no mark."""
    piece = _SEEN.sub("", piece)
    name = label(piece)
    if name in known:
        return name
    front = _FRONT.match(piece)
    if front and front[1].casefold() in words and (name := label(piece[front.end() :])) in known:
        return name
    name = label(piece.replace("：", ":").partition(":")[0].rstrip())
    return name if name in known and _PLACE_BEHIND.search(piece) else ""


def _rounded(match: re.Match[str], known: Labels) -> Mark | None:
    """Numbers, or authors and years, in parentheses."""
    inside = match["inside"]
    if _ROUND.fullmatch(inside):
        if _IN_NAME.search(_before(match)):
            return None
        ends = _AT_END.match(match.string, match.end()) or _ENDED.search(_before(match).rstrip())
        return _of_known(tuple(map(label, _SEPARATED.split(inside.strip()))), known.bare) if ends else None
    worded = _worded(inside, known.bare, known.words) if known.bare else ()
    if worded:
        return Mark(worded)
    found: list[str] = []
    for part in _WORKS.split(inside):
        page = _AUTHOR_PAGE.fullmatch(part)
        if page and (name := f"{page['author'].casefold()} p.") in known.known:
            found.append(name)
            continue
        for year in _YEAR.finditer(part):
            words = _AUTHOR_WORD.findall(part[: year.start()]) or _AUTHOR_WORD.findall(_before(match))[:-5:-1]
            named = (f"{word.casefold()} {year[0].casefold()}" for word in words)
            found += [next(filter(known.known.__contains__, named), "")]
    labels = tuple(dict.fromkeys(filter(None, found)))
    return Mark(labels) if labels else None


_WHERE = re.compile(r"†[^,，;；]*|L\d+(?:-L?\d+)?|summary")  # in the work
_LISTED = re.compile(r" {0,2}([,，、;；–—~|&-]|(?:and|und|et|y|和|及)(?= )) {0,2}(?=\^?\d)")


def _labels(numbers: str, known: Collection[str]) -> tuple[str, ...]:
    """`1, 3-5` as labels; empty for what looks like an interval, a year, a vector or a list of values."""
    labels, counts = (_known_numbers if len(numbers) <= _MAX_KNOWN else _numbers)(numbers)
    repeated = len(set(labels)) < len(labels) and _WHERE.search(numbers) is None  # a vector
    return labels if counts or (not repeated and all(map(known.__contains__, labels))) else ()


def _numbers(numbers: str) -> tuple[tuple[str, ...], bool]:
    """The labels of `1, 3-5`, and whether they are small and differ."""
    found: list[int] = []
    span = False
    for part in (numbers,) if numbers.isdecimal() else _LISTED.split(_WHERE.sub("", numbers)):
        if part in tuple("-–—~"):
            span = True
        elif part.strip("^ ").isdecimal():
            number = int(part.strip("^ "))
            if span and found and found[-1] < number <= found[-1] + MAX_RANGE:
                found.extend(range(found[-1] + 1, number))
            found.append(number)
            span = False
    counts = all(0 < number < 1000 for number in found) and len(found) == len(set(found))
    return tuple(map(_spelled, found)), counts


_MAX_KNOWN = 20  # characters of numbers whose labels are kept
_known_numbers = lru_cache(maxsize=1_000)(_numbers)


@lru_cache(maxsize=10_000)
def _spelled(number: int) -> str:
    """`number` as a label; ranges name the same few again and again, and share them."""
    return str(number)


def _plain_numbers(text: str, start: int, end: int, known: Labels) -> Iterator[_Span]:
    """Numbers that are marks only because they end a sentence; one before a mark is a value."""
    last = start
    for digits in _FIGURE.finditer(text, start, end):
        begin = digits.start()
        match = _PLAIN.match(text, begin, end) if begin >= last else None
        if match is None:
            continue
        worded = match["worded"] is not None
        gap = text[begin - 1 : begin] == " "
        if begin - gap - worded < last:
            continue
        word = _LAST_WORD.search(text, max(last, begin - _MAX_WORD), begin - 1) if worded else None
        last = match.end()
        label = match["number"] or match["after"] or match["tight"] or match["wide"] or match["glued"]
        numbers = tuple(str(int(one)) for one in _FIGURES.findall(label))
        space = _SPACES.match(text, match.end(), end)
        value = end < len(text) and space is not None and space.end() == end
        loose = known.close and text[begin - 1 : begin] not in _STOPS
        listed = known.close or known.bare
        is_known = not loose and len({*numbers}) == len(numbers) and all(one in listed for one in numbers)
        if not is_known or value or (match["glued"] and not known.glued):
            continue
        if _own_number(word[0] if word else "", label) or (
            len(numbers) > 1 and _MORE.match(text, match.end())
        ):
            continue
        yield begin - gap, match.end(), Mark(numbers)


def _own_number(word: str, said: str) -> bool:
    """Whether what is `said` behind a word is its own: a name has one number ("Apollo 11"), "steps" have several."""
    if not word:
        return False
    if word[-1] >= "⺀":  # of the scripts of East Asia
        return word[-1] in _CHINESE_TAKES_NUMBER
    if "," in said and not word.endswith("s"):
        return len(word) < 3 or word.lower() in _TAKES_NUMBER
    takes = word in _TAKES_NUMBER or (not said.isdecimal() and word.removesuffix("s") in _TAKES_NUMBER)
    return len(word) < 3 or word != word.lower() or takes
