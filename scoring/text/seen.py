"""What a reader of a report sees: its text without what no rendered page shows.

Left out are comments of HTML and Markdown, elements that are hidden, without size, out of the page, transparent or of
the colour behind them (`styles.py`), attributes, titles of links, alternative texts of images, long names of links,
footnotes that nothing leads to, phantoms of LaTeX, long words behind the language of a code fence, and characters
without a shape. Code is shown as it is. Linear in the text.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote_plus

import msgspec

from adjudge.scoring.text.screen import Screen
from adjudge.scoring.text.styles import BEHIND, Sheet, behind, has_no_contrast, is_out_of_sight, rules_in

__all__ = ["SHAPELESS", "Seen", "seen"]

SHAPELESS = re.compile("[\u200b\u200c\u200d\u2060\ufeff\u00ad]")
"""Characters without a shape, which may stand inside of a word."""
_RUNS = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\U000e0100-\U000e01ef]{3,}"
)
_TAGS = re.compile(
    "(?P<flag>\U0001f3f4[\U000e0020-\U000e007e]{1,10}\U000e007f)|[\U000e0000-\U000e007f]{1,10000}"
)
_NEVER_SHOWN = frozenset(
    {"script", "style", "template", "noscript", "datalist", "canvas", "audio", "video", "iframe", "object"}
    | {"head", "title", "defs", "desc", "metadata", "noembed", "noframes", "progress", "meter"}
    | {"annotation", "annotation-xml", "mphantom", "rp"}
)
_VOID = frozenset({"area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})
_LINKS = frozenset({"href", "src", "srcset", "cite", "style", "class", "id"})
_A_TITLE = 200  # characters: what is longer is not the title of a page or a picture
_A_SLUG = 40  # words: real addresses, with the words of a title and a passage, have 33

_PIECES = re.compile(
    # What each of them begins with, for speed: at most places there is none.
    r"(?:(?=[`<\]!\\])|^(?=[ \t]{0,3}[`~\[]))(?:"
    r"(?P<code>^[ \t]{0,3}(?P<fence>```|~~~)(?s:.*?)^[ \t]{0,3}(?P=fence)[^\n]*$|`[^`\n]{1,400}`)"
    r"|(?P<comment><!--|<\?|<!\[CDATA\[|<![A-Z](?=[A-Z]))"
    r"|(?P<tag><(?P<closes>/?)(?P<name>[A-Za-z][A-Za-z0-9-]{0,20})(?P<attributes>[\s/][^<>]{0,100000}+)?>)"
    r"|(?P<footnote>^[ ]{0,3}\[\^(?P<number>[^\[\]\n]{1,100})\]:(?P<foot>[^\n]{1,100000}))$"
    r"|(?P<note>^[ ]{0,3}\[[^\[\]\n]{1,100}\]:[ \t]{1,20}(?:#|<>)(?P<noted>\s{1,20}[\"'(][^\n]{0,100000})$)"
    r"|^[ ]{0,3}\[(?P<long>[^\[\]\n]{200,999})\]:(?=[ \t])"
    r"|^[ ]{0,3}\[[^\[\]\n]{1,200}\]:[ \t]{1,20}[^\s]{1,2000}"
    r"(?P<defined>\s{1,20}(?:\"[^\"\n]{0,100000}\"|'[^'\n]{0,100000}'|\([^()\n]{0,100000}\)))[ \t]{0,20}$"
    r"|\]\([^\s()\[\]]{1,2000}(?P<title>[ \t]{1,20}(?:\"[^\"\n]{0,100000}\"|'[^'\n]{0,100000}'|\([^()\n]{0,100000}\)))"
    r"[ \t]{0,20}\)"
    r"|\]\((?P<address>[^\s()\[\]]{200,10000})\)"
    r"|!\[(?P<alternative>[^\[\]\n]{1,100000})(?=\][(\[])"
    r"|(?P<latex>\\(?:[hv]?phantom|(?:scalebox|transparent)[ \t]{0,5}\{0?\.?0{0,5}\}"
    r"|(?:text)?color[ \t]{0,5}(?:\[(?P<model>[A-Za-z]{1,10})\])?[ \t]{0,5}\{(?P<colour>[^{}\n]{1,60})\}"
    r"|style[ \t]{0,5}\{(?P<css>[^{}\n]{1,300})\})[ \t]{0,5}))",
    re.MULTILINE,
)
# What is unseen has at least one of these, characters without a shape the first: most texts have none, and one pass of
# RE2 says so.
_SCREEN = Screen(
    [
        "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
        "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e01ef]",
        r"<[!?]",
        r"</?[A-Za-z]",
        r"^ {0,3}\[[^\[\]\n]{1,999}\]:",
        r"\]\([^ \t\n()\[\]]{1,1000}[ \t]",
        r"\]\([^ \t\n()\[\]]{200}",
        r"!\[",
        r"^[ \t]{0,3}(?:```|~~~)[^\n]{200}",
        r"\\(?:[hv]?phantom|scalebox|transparent|(?:text)?color|style)",
    ]
)
_ENDS = {"<!--": "-->", "<?": "?>", "<![CDATA[": "]]>"}
_ATTRIBUTE = re.compile(
    r"(?P<key>[^\s=\"'/<>]{1,100})(?:\s{0,20}=\s{0,20}(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|(?P<bare>[^\s\"'<>]{1,2000})))?"
)
_STYLE_SHEET = re.compile(r"<style(?:\s[^<>]{0,200})?>([^<]{0,100000}+)</style", re.IGNORECASE)
_CODE = re.compile(r"(?ms)^[ \t]{0,3}(?P<fence>```|~~~).*?^[ \t]{0,3}(?P=fence)[^\n]*$|`[^`\n]{1,400}`")
_USED = re.compile(r"\[\^([^\[\]\n]{1,100})\](?!:)")
# Attributes that say what a rule of CSS says.
_AS_RULES = {
    "color": "color",
    "bgcolor": "background-color",
    "opacity": "opacity",
    "visibility": "visibility",
    "display": "display",
    "font-size": "font-size",
}


class Seen(msgspec.Struct, frozen=True):
    """What a reader sees of a text, and how many characters he does not, white space aside.

    Titles and alternative texts of a usual length are not counted: nobody hides anything there. The sentences in a
    link's address are counted, and stay: what it leads to is its source.
    """

    text: str
    hidden: int


def seen(text: str) -> Seen:
    """What a reader sees of `text`."""
    shown: list[str] = []
    at = hidden = 0
    places = _SCREEN.possible(text)
    for start, end, count in _unseen(text) if places and places[-1] else ():
        if start >= at:
            shown.append(text[at:start])
            at = end
            hidden += count
    rest = "".join(shown) + text[at:] if at else text
    if places and not places[0]:
        hidden += sum(len(run.group()) for run in _RUNS.finditer(rest))
        rest = _RUNS.sub("", rest)
        hidden += sum(len(run.group()) for run in _TAGS.finditer(rest) if not run["flag"])
        rest = _TAGS.sub(lambda run: run["flag"] or "", rest)
        rest = re.sub("[\u200b\u2060\ufeff]", "", rest)
    return Seen(rest, hidden)


def _unseen(text: str) -> Iterator[tuple[int, int, int]]:
    """Where what is not seen begins and ends, and how many of its characters count."""
    page = _Page(text)
    hidden, depth, begin, ended = "", 0, 0, 0
    closing: dict[int, int] | None = None
    for piece in _PIECES.finditer(text):
        if piece.start() < ended:
            continue
        name = (piece["name"] or "").lower()
        if hidden:
            if name == hidden:
                depth += -1 if piece["closes"] else 1
                if not depth:
                    yield begin, piece.end(), _weight(hidden, text[begin : piece.end()])
                    hidden = ""
        elif piece["tag"]:
            attributes = _attributes(piece["attributes"] or "")
            if piece["closes"]:
                page.close(name)
            elif page.hides(name, attributes, piece.group().endswith("/>")):
                hidden, depth, begin = name, 1, piece.start()
            elif attributes:
                yield from _attributed(piece)
        elif piece["comment"]:
            ended = page.end_of_comment(piece)
            if ended > piece.end():
                yield piece.start(), ended, _inked(text[piece.end() : ended].removesuffix("-->"))
        elif piece["fence"]:
            yield from _informed(piece)
        elif piece["footnote"]:
            if page.is_unused(piece["number"], piece["foot"]):
                yield piece.start(), piece.end(), _titled(piece["foot"])
        elif piece["note"]:
            yield piece.start(), piece.end(), _inked(piece["noted"])
        elif piece["latex"]:
            closing = _braces(text) if closing is None else closing
            end = _end_of_latex(text, piece, closing)
            if end > piece.end():
                ended = end
                yield piece.start(), end, _inked(text[piece.end() : end])
        elif piece["address"]:
            yield piece.end(), piece.end(), _said_in(piece["address"])
        else:
            for group in ("defined", "title", "alternative", "long"):
                if piece[group]:
                    yield piece.start(group), piece.end(group), _titled(piece[group])
    if hidden:  # what nothing closes is hidden to the end
        yield begin, len(text), _weight(hidden, text[begin:])


class _Page:
    """What decides about an element beside itself: style sheets, the colours behind it, and what a text refers to."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._sheet = Sheet()
        self._opened: list[tuple[str, str | None]] = []
        self._kept: dict[
            tuple[str, str | None], tuple[str, str | None]
        ] = {}  # each once, however often opened
        self._open: dict[str, int] = {}
        self._lasts: dict[str, int] = {}
        self._used: frozenset[str] | None = None
        if "<style" in text.lower():
            for css in _STYLE_SHEET.finditer(_CODE.sub(" ", text)):
                self._sheet.add(css[1])

    def hides(self, name: str, attributes: dict[str, str], is_closed: bool) -> bool:
        """Whether a browser shows nothing of an element, which is open from now on if it has an end."""
        if name in _VOID:
            return False
        if name in _NEVER_SHOWN or "hidden" in attributes or (name == "dialog" and "open" not in attributes):
            return not is_closed
        rules = self._sheet.rules_of(name, attributes)
        rules |= {_AS_RULES[key]: said.lower() for key, said in attributes.items() if key in _AS_RULES}
        if name in ("text", "tspan") and attributes.get("fill"):
            rules["-webkit-text-fill-color"] = attributes["fill"].lower()
        rules |= rules_in(attributes.get("style", ""))
        back = self._opened[-1][1] if self._opened else BEHIND
        if rules:
            back = behind(rules, back)
            if is_out_of_sight(rules) or has_no_contrast(rules, back):
                return not is_closed
        if not is_closed:
            opened = (name, back)
            self._opened.append(self._kept.setdefault(opened, opened))
            self._open[name] = self._open.get(name, 0) + 1
        return False

    def close(self, name: str) -> None:
        """An element ends, and with it those in it that have no end of their own."""
        while self._open.get(name):
            last, _ = self._opened.pop()
            self._open[last] -= 1
            if last == name:
                return

    def end_of_comment(self, opening: re.Match[str]) -> int:
        """Behind which character it ends, as far as it hides: one without an end does where it begins a line."""
        closing = _ENDS.get(opening.group(), ">")
        if closing not in self._lasts:
            self._lasts[closing] = self._text.rfind(closing)
        if opening.end() <= self._lasts[closing]:
            return self._text.index(closing, opening.end()) + len(closing)
        begins = not self._text[max(opening.start() - 4, 0) : opening.start()].rpartition("\n")[2].strip(" ")
        return len(self._text) if begins and closing == "-->" else 0

    def is_unused(self, number: str, foot: str) -> bool:
        """Whether no mark leads to a footnote; a list of sources may do without."""
        if len(foot) <= _A_TITLE or "://" in foot:
            return False
        if self._used is None:
            self._used = frozenset(_USED.findall(self._text))
        return number not in self._used


def _attributes(said: str) -> dict[str, str]:
    return {
        one["key"].lower(): one["double"] or one["single"] or one["bare"] or ""
        for one in _ATTRIBUTE.finditer(said)
    }


def _attributed(tag: re.Match[str]) -> Iterator[tuple[int, int, int]]:
    """The words in the attributes of an element that is shown; addresses are none."""
    for one in _ATTRIBUTE.finditer(tag["attributes"]):
        said = one["double"] or one["single"] or ""
        if " " in said and one["key"].lower() not in _LINKS:
            at = tag.start("attributes")
            yield at + one.start(), at + one.end(), _titled(said)


def _informed(code: re.Match[str]) -> Iterator[tuple[int, int, int]]:
    """The words behind the language of a fence, if they are longer than a title."""
    line = code.group().partition("\n")[0]
    words = line.lstrip(" \t`~").split(maxsplit=1)
    said = words[-1] if len(words) > 1 else ""
    if _titled(said) and not (code["fence"] == "```" and "`" in said):
        end = code.start() + len(line)
        yield end - len(said), end, _titled(said)


def _end_of_latex(text: str, mark: re.Match[str], closing: dict[int, int]) -> int:
    """Behind which character what `mark` hides ends; 0 if it hides nothing."""
    if mark["css"]:
        rules = rules_in(mark["css"])
        if not is_out_of_sight(rules) and not has_no_contrast(rules, behind(rules, BEHIND)):
            return 0
    if mark["colour"]:
        said = _latex_colour(mark["model"] or "", mark["colour"].strip())
        before = text[max(mark.start() - 60, 0) : mark.start()]
        if "colorbox" in before or not has_no_contrast({"color": said}, BEHIND):
            return 0
        if text[mark.end() : mark.end() + 1] != "{":
            opened = mark.start() - 1
            return closing.get(opened, 0) or _until(text, mark.end())
    return closing.get(mark.end(), 0)


def _until(text: str, at: int) -> int:
    """Where a paragraph ends."""
    end = text.find("\n\n", at)
    return len(text) if end < 0 else end


def _latex_colour(model: str, said: str) -> str:
    """A colour of LaTeX in the words of CSS."""
    if model in ("rgb", "gray"):
        parts = [f"{part.strip()[:8]}" for part in said.split(",")]
        made = [_share(part) for part in (parts * 3 if model == "gray" else parts)[:3]]
        return f"rgb({','.join(made)})"
    return {"HTML": f"#{said.lower()}", "RGB": f"rgb({said})"}.get(model, said.lower())


def _share(part: str) -> str:
    return f"{100 * float(part):.0f}%" if re.fullmatch(r"[01]?\.?\d{1,6}", part) else "0%"


def _weight(name: str, hidden: str) -> int:
    """How many characters of a hidden element count; a short style sheet and the source of a formula are no text."""
    said = _TAG.sub("", hidden)
    return _titled(said) if name in ("style", "annotation", "annotation-xml") else _inked(said)


def _titled(text: str) -> int:
    count = _inked(text)
    return count if count > _A_TITLE else 0


_TAG = re.compile(r"</?[A-Za-z][^<>]{0,2000}>")
_WORD = re.compile(r"(?<![^\W_])[^\W\d_]{2,20}(?![^\W_])")


def _said_in(address: str) -> int:
    """How many characters of words an address holds, if they are more than a title's."""
    words = _WORD.findall(unquote_plus(address))
    return sum(map(len, words)) if len(words) > _A_SLUG else 0


def _inked(text: str) -> int:
    return len("".join(text.split()))


def _braces(text: str) -> dict[int, int]:
    """Behind which character each opening brace is closed."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for brace in re.finditer(r"[{}]", text):
        if brace.group() == "{":
            opened.append(brace.start())
        elif opened:
            found[opened.pop()] = brace.end()
    return found
