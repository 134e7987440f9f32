"""What a reader of a report sees: its text without what no rendered page shows.

Left out are comments of HTML and Markdown, elements that are hidden, without size, transparent or of the page's colour,
titles of links, alternative texts of images, phantoms of LaTeX, and characters without a shape. Code is shown as it is.
Style sheets are not followed. Linear in the text.
"""

import re
from collections.abc import Iterator

import msgspec

__all__ = ["SHAPELESS", "Seen", "seen"]

SHAPELESS = re.compile("[\u200b\u200c\u200d\u2060\ufeff\u00ad]")
"""Characters without a shape, which may stand inside of a word."""
_RUNS = re.compile("[\u200b\u200c\u200d\u2060\ufeff]{3,}")
_TAGS = re.compile(
    "(?P<flag>\U0001f3f4[\U000e0020-\U000e007e]{1,10}\U000e007f)|[\U000e0000-\U000e007f]{1,10000}"
)
_NEVER_SHOWN = frozenset(
    {"script", "style", "template", "noscript", "datalist", "canvas", "audio", "video", "iframe", "object"}
)
_VOID = frozenset({"area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})
_A_TITLE = 200  # characters: what is longer is not the title of a page or a picture

_PIECES = re.compile(
    r"(?P<code>^[ \t]{0,3}(?P<fence>```|~~~)(?s:.*?)^[ \t]{0,3}(?P=fence)[^\n]*$|`[^`\n]{1,400}`)"
    r"|(?P<comment><!--)"
    r"|(?P<tag><(?P<closes>/?)(?P<name>[A-Za-z][A-Za-z0-9-]{0,20})(?P<attributes>[\s/][^<>]{0,2000})?>)"
    r"|(?P<note>^[ ]{0,3}\[[^\[\]\n]{1,100}\]:[ \t]{1,20}(?:#|<>)(?P<noted>\s{1,20}[\"'(][^\n]{0,100000})$)"
    r"|^[ ]{0,3}\[[^\[\]\n]{1,200}\]:[ \t]{1,20}[^\s]{1,2000}"
    r"(?P<defined>\s{1,20}(?:\"[^\"\n]{0,100000}\"|'[^'\n]{0,100000}'|\([^()\n]{0,100000}\)))[ \t]{0,20}$"
    r"|\]\([^\s()\[\]]{1,2000}(?P<title>[ \t]{1,20}(?:\"[^\"\n]{0,100000}\"|'[^'\n]{0,100000}'))[ \t]{0,20}\)"
    r"|!\[(?P<alternative>[^\[\]\n]{1,100000})\](?=[(\[])"
    r"|(?P<latex>\\(?:[hv]?phantom|(?:text)?color[ \t]{0,5}\{white\})[ \t]{0,5})(?=\{)",
    re.MULTILINE,
)
_STYLE = re.compile(r"\bstyle\s{0,5}=\s{0,5}(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)')", re.IGNORECASE)
_HIDDEN = re.compile(r"(?:^|\s)hidden(?=[\s=/]|$)", re.IGNORECASE)
_COLOUR = re.compile(r"\bcolor\s{0,5}=\s{0,5}[\"']?([#\w]{1,20})", re.IGNORECASE)
_ZERO = re.compile(r"[-+]?(?:0{1,5}(?:\.0{1,10})?|\.0{1,10}|(?:0?\.\d{1,5}|1)(?=px|pt))(?:[a-z]{1,4}|%)?")
_FAR = re.compile(r"-\d{3,}")
_RGB = re.compile(
    r"rgba?\(\s*(\d{1,3})\s*[, ]\s*(\d{1,3})\s*[, ]\s*(\d{1,3})\s*(?:[,/]\s*([\d.]{1,6})\s*)?\)"
)
_NAMES = {"white": "ffffff", "snow": "fffafa", "ivory": "fffff0", "black": "000000", "transparent": ""}


class Seen(msgspec.Struct, frozen=True):
    """What a reader sees of a text, and how many characters he does not, white space aside.

    Titles and alternative texts of a usual length are not counted: nobody hides anything there.
    """

    text: str
    hidden: int


def seen(text: str) -> Seen:
    """What a reader sees of `text`."""
    shown: list[str] = []
    at = hidden = 0
    for start, end, count in _unseen(text):
        if start >= at:
            shown.append(text[at:start])
            at = end
            hidden += count
    rest = "".join(shown) + text[at:] if at else text
    if not rest.isascii():
        hidden += sum(len(run.group()) for run in _RUNS.finditer(rest))
        hidden += sum(len(run.group()) for run in _TAGS.finditer(rest) if not run["flag"])
        rest = _TAGS.sub(lambda run: run["flag"] or "", rest)
        rest = re.sub("[\u200b\u2060\ufeff]", "", rest)
    return Seen(rest, hidden)


def _unseen(text: str) -> Iterator[tuple[int, int, int]]:
    """Where what is not seen begins and ends, and how many of its characters count."""
    inside, depth, begin, behind = "", 0, 0, 0
    closing: dict[int, int] | None = None
    last_comment = text.rfind("-->")
    for piece in _PIECES.finditer(text):
        if piece.start() < behind:
            continue
        name = (piece["name"] or "").lower()
        if inside:
            if name == inside:
                depth += -1 if piece["closes"] else 1
                if not depth:
                    yield begin, piece.end(), _inked(_TAG.sub("", text[begin : piece.end()]))
                    inside = ""
        elif piece["tag"]:
            if not piece["closes"] and name not in _VOID and _is_hidden(name, piece["attributes"] or ""):
                inside, depth, begin = name, 1, piece.start()
        elif piece["comment"]:
            if piece.end() <= last_comment:
                behind = text.index("-->", piece.end()) + len("-->")
                yield piece.start(), behind, _inked(text[piece.end() : behind - len("-->")])
        elif piece["note"]:
            yield piece.start(), piece.end(), _inked(piece["noted"])
        elif piece["latex"]:
            closing = _braces(text) if closing is None else closing
            end = closing.get(piece.end())
            if end is not None:
                behind = end
                yield piece.start(), end, _inked(text[piece.end() : end])
        else:
            for group in ("defined", "title", "alternative"):
                if piece[group]:
                    count = _inked(piece[group])
                    yield piece.start(group), piece.end(group), count if count > _A_TITLE else 0
    if inside:  # what nothing closes is hidden to the end
        yield begin, len(text), _inked(_TAG.sub("", text[begin:]))


_TAG = re.compile(r"</?[A-Za-z][^<>]{0,2000}>")


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


def _is_hidden(name: str, attributes: str) -> bool:
    """Whether a browser shows nothing of an element."""
    if name in _NEVER_SHOWN or not attributes:
        return name in _NEVER_SHOWN
    style = _STYLE.search(attributes)
    bare = _STYLE.sub("", attributes)
    if _HIDDEN.search(re.sub(r"\"[^\"]*\"|'[^']*'", "x", bare)):
        return True
    said = (style["double"] or style["single"] or "") if style else ""
    pairs = [rule.lower().split(":", 1) for rule in said.split(";") if ":" in rule]
    rules = {key.strip(): value.strip().removesuffix("!important").strip() for key, value in pairs}
    if name == "font" and (colour := _COLOUR.search(bare)):
        rules.setdefault("color", colour[1].lower())
    return _is_styled_away(rules)


def _is_styled_away(rules: dict[str, str]) -> bool:
    if rules.get("display") == "none" or rules.get("visibility") in ("hidden", "collapse"):
        return True
    if any(_ZERO.fullmatch(rules.get(key, "")) for key in ("opacity", "font-size")):
        return True
    if any(rules.get(key, "") in ("0", "0px") for key in ("width", "height", "max-height", "max-width")):
        return True
    if any(_FAR.match(rules.get(key, "")) for key in ("left", "top", "text-indent", "margin-left")):
        return True
    cut = " ".join(rules.get(key, "") for key in ("transform", "clip", "clip-path"))
    return bool(re.search(r"scale\(0\)|inset\(100%\)|rect\(0", cut)) or _has_no_contrast(rules)


def _has_no_contrast(rules: dict[str, str]) -> bool:
    """Whether letters have the colour of what is behind them, which is white where nothing else is said."""
    if "color" not in rules:
        return False
    letters = _colour(rules["color"])
    behind = rules.get("background-color", rules.get("background", "white"))
    return letters == () or (letters is not None and letters == _colour(behind))


def _colour(said: str) -> tuple[int, ...] | None:
    """Red, green and blue, nearly white as white; nothing for a transparent one, None for one that is not known."""
    found = _RGB.fullmatch(said)
    if found is not None:
        if found[4] is not None and float(found[4].strip(".") or 0) == 0:
            return ()
        parts = tuple(int(found[n]) for n in (1, 2, 3))
    else:
        digits = _NAMES.get(said, said.removeprefix("#") if said.startswith("#") else None)
        if digits == "":
            return ()
        if digits is None or not re.fullmatch(r"[0-9a-f]{3}|[0-9a-f]{6}", digits):
            return None
        digits = "".join(2 * one for one in digits) if len(digits) == 3 else digits
        parts = tuple(int(digits[n : n + 2], 16) for n in (0, 2, 4))
    return (255, 255, 255) if min(parts) >= 245 else parts
