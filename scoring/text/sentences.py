"""Text with its citation marks lifted out: sentences, table cells, and what they state."""

import re

from adjudge.scoring.text.citation_marks import Labels, Mark, may_hold_mark, pieces
from adjudge.scoring.text.scan import WITH_PARENTHESES
from adjudge.scoring.text.titles import LIKELY, strength

MAX_FACT = 1_000
_MAX_CELLS = 100

# Two meaningless characters stand for marks while sentences are split; they are removed from reports.
_MARK, _LINK = "\ue000", "\ue001"
# What turns the direction of writing, which says nothing.
_DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_UNSEEN = re.compile(f"[{_MARK}{_LINK}{_DIRECTIONS}]")
_SPACES_ALIKE = "\xa0\u2009\u202f"

_SLOT = re.compile(f"[{_MARK}{_LINK}]")
# Tags around marks and nothing else.
_RAISED_SLOTS = re.compile(
    rf"<(?:sup|small|span)>((?:[\s,;\[\]()]{{0,3}}+[{_MARK}{_LINK}]){{1,20}}[\s\]\[)]{{0,3}}+)</(?:sup|small|span)>"
)
_WIDE_END = frozenset("。！？।")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|al|vs|cf|figs?|nos?|dr|mr|mrs|ms|prof|st|inc|ltd|co|corp|approx|ca|pp?|vol|eq|eds?|resp|u\.s|u\.k|"
    r"jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)|\b[A-Z])\.$",
    re.IGNORECASE,
)
# In front of a number, or behind one: "Art. 4", "84 Mio. Euro".
_BEFORE_NUMBER = re.compile(
    r"\b(?:arts?|abs|nr|núm|num|par|kap|ziff|bd|págs?|pág|rn|cap|§|стр|с|рис|табл|ст|гл)\.$", re.IGNORECASE
)
_NUMBER_BEHIND = re.compile(r"[ \t]{0,2}\d")
_OTHER_LANGUAGES = re.compile(
    r"(?:\d ?(?:mio|mrd|tsd)|\b(?:bzw|vgl|zzgl|inkl|ggf|evtl|z\. ?b|d\. ?h|u\. ?a|p\. ?ex|ee|ee\. ?uu|sra?|aprox|hrsg)"
    r"|(?<![\d ] )\b(?:ул|им|г)|\bпроф)\.$",
    re.IGNORECASE,
)
# A day in front of its month, which German alone writes so with a capital: "3. Mai".
_DAY = re.compile(r"(?<![\d.,])\d{1,2}\.$")
_MONTH = re.compile(
    r" ?(?:J(?:anuar|änner|uni|uli)|Februar|März|April|Mai|August|September|Oktober|November|Dezember)\b"
)
# What any of these ends with that is more than a letter: most words are none of them.
_SHORTENED = frozenset(
    "al vs cf fig figs no nos dr mr mrs ms prof st inc ltd co corp approx ca pp vol eq ed eds resp jan feb mar apr jun"
    " jul aug sep sept oct nov dec art arts abs nr num par kap ziff bd pag pags rn cap mio mrd tsd bzw vgl zzgl inkl"
    " ggf evtl ex ee uu sr sra aprox hrsg".split()
)
_EMPHASIS_SIGN = re.compile(r"[*_~`<]")  # what all emphasis begins with; most sentences have none
_EMPHASIS = re.compile(r"\*{1,3}|_{2,3}|(?<!\w)_|_(?!\w)|~~|`|</?(?:sup|sub|b|i|em|strong|br) ?/?>")
_BEFORE_POINT = re.compile(r" (?=[,;!?，。；：！？、)）\]】]|\.(?![\w/]))")  # none of a name: ".env", ".NET"
# What marks leave: the commas and dashes that parted them, commas at the end of a clause or behind a bracket.
_PARTED = re.compile(
    r"(?=[,;，；、(（\[])(?:[,;，；、](?: ?[,;，；、]){0,40} ?(?=[.!?。！？)）]|$)"
    r"|([,;，；、])(?: ?[,;，；、]){1,40}|([(（\[]) ?[,;，；、] ?)| [–—-](?= [–—-] )"
)
_NAMES = (
    r"(?:sources?|refs?|references?|see(?: also)?|via|from|cited in|according to|(?:数据|资料|信息)?来源"
    r"|参考(?:资料|文献)?|参见|详见|见|引自|出处)"
)
_SOURCE = re.compile(rf"(?=[srvfca数资信来参详见引出]){_NAMES}", re.IGNORECASE)
# A text without any of these, in lower case, has no name; ignoring case takes ſ for s, and both ı and İ for i.
_PARTS = "sour ref see via from cited accor 来源 参 见 引自 出处 ſ ı i̇".split()
# Marks behind a full stop: bare ones, those in brackets, and links if a sentence begins behind them.
_APART = r"[\s,;，；、&|/]{0,3}(?:(?:and|und|et|y|和|及) )?"
_BEHIND = (
    rf"(?: ?{_MARK}[.。]?)*"
    rf"(?:[ ]{{0,2}}[(（\[【]\s?(?:{_NAMES} ?[:：]? ?)?(?:{_APART}[{_MARK}{_LINK}]){{1,20}}\s?[)）\]】][.。]?)*"
    rf"(?:(?:[ ,;，；、]{{0,3}}{_LINK}){{1,20}}[.。]?(?=\s*$|\n|\s{{1,2}}[*_\"“]{{0,3}}[A-ZÀ-ÖØ-ÞА-ЯΑ-Ω]))?"
)
# A work with its address in parentheses: "(Register of the mill: https://...)".
_TITLED = rf"(?:[ ]?[(（\[][^()（）\[\]\n{_MARK}{_LINK}]{{1,150}}[:：,，–—-] ?{_MARK}[)）\]][.。]?)"
# Marks of any shape, as they stand behind the full stops of a text whose last one does.
_STYLED = (
    rf"(?:[ \t*_(（\[【<\\–—]{{0,5}}+(?:{_NAMES} ?[:：]? ?)?(?:[,;，；、&/] ?)?"
    rf"[{_MARK}{_LINK}][*_)）\]】>\\]{{0,4}}+[.。]?)"
)
# The class ahead of the alternatives lets the search skip all other characters at once.
_STOP = r"[.!?。！？…।]+[\"'”’»」』）)*_]*"
_END = re.compile(rf"(?=[.!?。！？…।\n])(?:{_STOP}{_BEHIND}{3 * f'{_TITLED}?'}|\n)")
_STYLED_END = re.compile(rf"(?=[.!?。！？…।\n])(?:{_STOP}{_STYLED}{{0,20}}{3 * f'{_TITLED}?'}|\n)")
_ENDS_STYLED = re.compile(rf"{_STYLED}{{1,20}}\s*$")
TITLES_BEHIND = re.compile(
    r"(?<=[.!?。！？।])[ ]?[(（\[][^()（）\[\]\n]{1,150}[:：,，–—-]\s?[)）\]][.。]?"
    + 2 * r"(?:[ ]?[(（\[][^()（）\[\]\n]{1,150}[:：,，–—-]\s?[)）\]][.。]?)?"
)
"""Works in parentheses behind a full stop, their addresses taken out."""
LEFT_OVER = re.compile(
    rf"<[ ]?>|[(（\[【][\s,，;；、.]{{0,20}}(?:(?:{_NAMES}|e\.g\.) ?[:：]?)?[\s,，;；、.]{{0,20}}[)）\]】]",
    re.IGNORECASE,
)
"""Brackets that hold nothing once the marks are out of them, or only a word such as "Source:"."""
_LEFT_OPEN = "<(（[【"  # what such brackets open with
LABEL_ONLY = re.compile(rf"[\s>*_-]{{0,20}}{_NAMES}?[\s:：*_,，;；、.。]{{0,20}}", re.IGNORECASE)
"""A line that holds nothing else once the marks are out of it."""
_FORUM = (
    "r/",
    "u/",
)  # what the names of a forum and of its members begin with, at the start of a sentence too
_QUOTED = re.compile(r"[.!?…][*_]{0,3}[\"”’»」』]")
_NAMED = re.compile(
    rf"[*_)]{{0,3}} ?[—–-]{{1,2}} ?[^.!?\n]{{1,150}}[{_MARK}{_LINK}][)\]*_. ]{{0,4}}$", re.MULTILINE
)
"""Whose words a quotation is, behind it: '"..." — A name [3]'."""
_TITLE = re.compile(r"\[[^\[\]]*\]")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_TWO_WORDS = re.compile(r"[\W_]*+(?>[^\W\d_]+|\d+)[\W_]*+[^\W_]")
_IDEOGRAPHS = re.compile(
    r"(?:[^一-鿿]*+[一-鿿]){4}|(?:[^ぁ-ヿ一-鿿]*+[ぁ-ヿ一-鿿]){6}"
)  # as many as say something
_SENTENCE_WORDS = re.compile(
    r"(?:[\W_]*+(?>[^\W\d_㐀-鿿]+|\d+|[㐀-鿿]{2})){12}"
)  # more than most titles have
_MANY_WORDS = re.compile(r"(?:[\W_]*+(?>[^\W\d_㐀-鿿]+|\d+|[㐀-鿿]{2})){5}")


class Marked:
    """A text whose marks are slots: `template` holds one character for each of `marks`."""

    __slots__ = ("_fact", "_template", "marks")

    def __init__(self, template: str, marks: list[Mark]) -> None:
        self.marks = marks
        self._template = template
        self._fact: str | None = None

    @property
    def raw(self) -> str:
        """The text as it was written."""
        return self._filled([mark.raw for mark in self.marks]).strip()

    @property
    def fact(self) -> str:
        """The statement in the text: no marks, links as `[title]`, no emphasis; at most 1,000 characters.

        A link behind the sentence's end names its source, and is no part of it.
        """
        if self._fact is None:
            inside = self._inside() if self.marks else 0
            titles = [f"[{mark.title}]" if mark.title else "" for mark in self.marks[:inside]]
            titles += [""] * (len(self.marks) - inside)
            said = tidy(self._filled(titles))
            if self.marks:
                said = _PARTED.sub(r"\1\2", said)
            if ")" in said or "）" in said or "]" in said:
                said = TITLES_BEHIND.sub("", said)
            self._fact = said[:MAX_FACT]
        return self._fact

    @property
    def title(self) -> str:
        """The fact without the titles of links, or those if there is nothing else."""
        own = tidy(_TITLE.sub("", self.fact))
        return own if _WORD.search(own) else self.fact.strip("[] ")

    @property
    def links(self) -> bool:
        """Whether any mark is a link with a title."""
        return any(mark.title for mark in self.marks)

    @property
    def linked(self) -> str:
        """What the links state whose words are long enough for a sentence; "" if none are."""
        said = [mark.title for mark in self.marks if _MANY_WORDS.match(mark.title)]
        return tidy("; ".join(said))[:MAX_FACT]

    @property
    def states_something(self) -> bool:
        """Whether more than marks, titles of links and a word such as "Source" is left."""
        left = _unnamed(_TITLE.sub("", self.fact) if "[" in self.fact else self.fact)
        return _TWO_WORDS.match(left) is not None or _IDEOGRAPHS.match(left) is not None

    @property
    def states_a_name(self) -> bool:
        """Whether there is a word, not only numbers."""
        return any(not word.isdecimal() for word in _WORD.findall(self.fact))

    def sentences(self) -> list["Marked"]:
        """The sentences, each with its marks; one that follows the full stop belongs to the sentence before."""
        template = self._template
        boundaries = []
        quotes = counted = 0
        for match in (_STYLED_END if self._behind_stops() else _END).finditer(template):
            end = match.end()
            rest = template[end : end + 3].lstrip(" *_\"'“‘(（")
            if match[0][:2] in ("..", "…") and '"' in template:
                quotes, counted = quotes + template.count('"', counted, match.start()), match.start()
                if quotes % 2 and '"' not in match[0]:  # what a quotation leaves out
                    continue
            if match[0] == "\n" or not _WIDE_END.isdisjoint(match[0]):
                boundaries.append(end)
            elif (
                (rest and template[end] not in " \n" and not "一" <= template[end] <= "鿿")
                or (rest[:1].islower() and rest[:2] not in _FORUM)
                or rest[:1] == "§"
                or (_QUOTED.search(match[0]) and _NAMED.match(template, end))
            ):
                continue
            elif _MARK in match[0] or not _abbreviates(template, match.start()):
                boundaries.append(end)
        if not boundaries:
            return [self] if template.strip() else []
        found = []
        start = taken = 0
        for end in [*boundaries, len(template)]:
            part = template[start:end]
            count = len(_SLOT.findall(part)) if self.marks else 0
            if part.strip():
                found.append(Marked(part, self.marks[taken : taken + count]))
            start, taken = end, taken + count
        return found

    def _behind_stops(self) -> bool:
        """Whether the last sentence's marks stand behind its full stop, which tells where those of the others do."""
        template = self._template
        if not self.marks or template.lstrip(" \t*_(（\\<")[:1] in (_MARK, _LINK):
            return False
        slot = max(template.rfind(_MARK), template.rfind(_LINK))
        last = max(template.rfind(stop, 0, slot) for stop in ".!?。！？।")
        return last >= 0 and _ENDS_STYLED.fullmatch(template, last + 1) is not None

    def _inside(self) -> int:
        """How many of the marks stand in front of the sentence's end."""
        template = self._template
        if _LINK in template:
            length = len(template.rstrip())
            for end in _END.finditer(template):
                if end.end() >= length and not _abbreviates(template, end.start()):
                    return len(_SLOT.findall(template[: end.start()]))
        return len(self.marks)

    def cells(self) -> list["Marked"]:
        """The cells of a table row."""
        inner = self._template.strip().removeprefix("|").removesuffix("|")
        taken = 0
        found = []
        for cell in inner.split("|", _MAX_CELLS):
            count = len(_SLOT.findall(cell)) if self.marks else 0
            found.append(Marked(cell, self.marks[taken : taken + count]))
            taken += count
        return found

    def _filled(self, texts: list[str]) -> str:
        if not texts:
            return self._template
        parts = _SLOT.split(self._template)
        return "".join(part + text for part, text in zip(parts, [*texts, ""], strict=True))


def _abbreviates(template: str, stop: int) -> bool:
    """Whether the full stop at `stop` is that of an abbreviation, or of a day in front of its month."""
    before = template[max(0, stop - 9) : stop + 1]
    word = before[before.rfind(" ") + 1 : -1]
    if len(word) > 1 and word.isascii() and word.isalpha() and word.lower() not in _SHORTENED:
        return False
    if _ABBREVIATION.search(before[-7:]) or _OTHER_LANGUAGES.search(before):
        return True
    if _BEFORE_NUMBER.search(before):
        return _NUMBER_BEHIND.match(template, stop + 1) is not None
    return _DAY.search(before) is not None and _MONTH.match(template, stop + 1) is not None


def readable(text: str) -> str:
    """`text` with plain spaces, and without signs that slots need or that turn the direction of writing."""
    if text.isascii():
        return text
    for space in _SPACES_ALIKE:
        text = text.replace(space, " ")
    return _UNSEEN.sub("", text)


def marked(text: str, labels: Labels) -> Marked:
    """`text` with its marks lifted out."""
    if not ("(" in text or "（" in text or may_hold_mark(text)):
        return Marked(text, [])
    marks: list[Mark] = []
    template: list[str] = []
    for piece in pieces(text, labels):
        if isinstance(piece, str):
            if (
                template
                and piece[:1] in _FULL_STOPS
                and marks
                and (title := _sentence_link(template, marks[-1]))
            ):
                template[-1:] = [title, _MARK]
                marks[-1] = marks[-1]._replace(title="", raw=marks[-1].raw.removeprefix(f"[{title}"))
            template.append(piece)
        else:
            template.append(_LINK if piece.title else _MARK)
            marks.append(piece)
    text = "".join(template)
    return Marked(_RAISED_SLOTS.sub(r"\1", text) if marks and "</s" in text else text, marks)


def _sentence_link(template: list[str], mark: Mark) -> str:
    """The words of a link that is a sentence by itself, between two full stops; "" of any other."""
    if template[-1] != _LINK or not _SENTENCE_WORDS.match(mark.title):
        return ""
    before = template[-2].strip() if len(template) > 1 else ""
    return mark.title if not before or before.endswith(_FULL_STOPS) else ""


_FULL_STOPS = (".", "!", "?", "。", "！", "？")
_ADDRESS_NAMES = frozenset(
    "link links url urls via doi web website webpage site href 链接 網址 网址 地址".split()
)
_RESOURCE_NAMES = frozenset(["resource", "resources", "资源", "資源"])
# Links and addresses alone; what else stands behind "Resources:" are means rather than sources.
_ONLY_LINKS = re.compile(
    rf"[\s*_]{{0,8}}+(?:(?:\[[^\[\]\n]{{1,1000}}+\]\({WITH_PARENTHESES}\)"
    r"|<?https?://[^\s<>]{1,8192}+>?)[\s,;*_.]{0,8}+){1,20}",
    re.IGNORECASE,
)
_NO_SOURCES = ("note", "notas", "endnote", "footnote", "примечан", "注", "註")
_TAGS = re.compile(r"</?(?:sub|sup|small|em|i|b|strong)>", re.IGNORECASE)
_NAME_END = re.compile(r"[:：]| [–—-](?= )")
_NAME_SIGN = re.compile("[:：–—-]")
_BEFORE_NAME = re.compile(r"^[\W_]+")
_MAX_NAME = 40  # characters in front of a line's colon


def names_sources(text: str) -> bool:
    """Whether a line is nothing but the sources of what stands beside it: "Source: [A study](https://...), [2]"."""
    if _NAME_SIGN.search(text, 0, _MAX_NAME) is None:  # quickly, as in most lines
        return False
    start = _TAGS.sub(lambda tag: " " * len(tag[0]), text[:_MAX_NAME])
    end = _NAME_END.search(start)
    name, behind, colon = (start[: end.start()], end.end(), True) if end else (start, 0, False)
    name = _BEFORE_NAME.sub("", name).rstrip(" \t*_)").casefold()
    if not colon or not name or name.startswith(_NO_SOURCES):
        return False
    if name in _ADDRESS_NAMES or strength(name) >= LIKELY:
        return True
    addresses = name in _RESOURCE_NAMES or name.rpartition(" ")[2] in _ADDRESS_NAMES  # "Product link: ..."
    return addresses and _ONLY_LINKS.fullmatch(text, behind) is not None


def tidy(text: str) -> str:
    """`text` without emphasis, empty brackets and the spaces that marks leave behind."""
    if _EMPHASIS_SIGN.search(text):
        text = _EMPHASIS.sub("", text)
    if any(sign in text for sign in _LEFT_OPEN):
        text = LEFT_OVER.sub("", text)
        if "()" in text or "（）" in text:  # brackets around brackets
            text = LEFT_OVER.sub("", text)
    return _BEFORE_POINT.sub("", " ".join(text.split())).strip(" ,;:，；：、|-–—")


def _unnamed(text: str) -> str:
    """`text` without the words that name a source; they are looked for only where there can be one."""
    lower = text.lower()
    for part in _PARTS:
        if part in lower:
            return _SOURCE.sub("", text)
    return text
