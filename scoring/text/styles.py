"""Whether an element is styled out of sight: what its rules of CSS say about size, place, opacity and colour.

Rules come from an element and from style sheets. Of a selector its last part counts, with one class, id or attribute
at most; rules under a condition (print, a narrow screen, a pointer) do not. Linear in the text.
"""

import colorsys
import html
import re
from collections.abc import Iterator, Mapping

__all__ = ["BEHIND", "Sheet", "behind", "has_no_contrast", "is_out_of_sight", "rules_in"]

BEHIND = "white"
"""The colour of a page that names none."""
_COMMENT = re.compile(r"/\*[^*]{0,100000}+\*/")
_ESCAPE = re.compile(r"\\([0-9a-fA-F]{1,6})\s?")
_VARIABLE = re.compile(r"var\(\s{0,5}(--[\w-]{1,60})[^()]{0,60}\)")
_MOST_RULES = 50

Rules = Mapping[str, str]


def rules_in(css: str) -> dict[str, str]:
    """The rules of a declaration, its names and values in lower case."""
    if "&" in css:
        css = html.unescape(css)
    if "\\" in css:
        css = _ESCAPE.sub(lambda found: chr(min(int(found[1], 16), 0xFFFD)), css)
    pairs = [rule.lower().split(":", 1) for rule in _COMMENT.sub("", css).split(";") if ":" in rule]
    rules = {
        key.strip(): value.strip().removesuffix("!important").strip() for key, value in pairs[:_MOST_RULES]
    }
    return {
        key: _VARIABLE.sub(lambda found: rules.get(found[1], ""), value) if "var(" in value else value
        for key, value in rules.items()
    }


_BLOCK = re.compile(r"([^{}]{0,5000}+)([{}])")
_LAST = re.compile(
    r"(?:^|[\s>+~])(?P<name>[a-z][\w-]{0,60}|\*)?"
    r"(?P<mark>[.#][\w-]{1,100}|\[[\w-]{1,60}(?:=(?:\"[^\"\[\]]{0,100}\"|'[^'\[\]]{0,100}'|[\w-]{1,100}))?\])?$"
)
_UNQUOTED = str.maketrans("", "", "\"'")
_ALWAYS = re.compile(r"@(?:media\s+(?:only\s+)?(?:screen|all)|supports\b.*|layer\b.*)", re.DOTALL)


class Sheet:
    """The style sheets of a text."""

    def __init__(self) -> None:
        self._rules: dict[tuple[str, str], dict[str, str]] = {}

    def add(self, css: str) -> None:
        """Read one more sheet."""
        for selectors, body in _blocks(_COMMENT.sub("", css)):
            rules = rules_in(body)
            for selector in selectors.split(","):
                last = _LAST.search(selector.strip())
                if last is not None and last.group().strip():
                    key = ((last["name"] or "").strip("*"), (last["mark"] or "").translate(_UNQUOTED))
                    self._rules.setdefault(key, {}).update(rules)

    def rules_of(self, name: str, attributes: Mapping[str, str]) -> dict[str, str]:
        """What the sheets say of an element."""
        if not self._rules:
            return {}
        marks = [f".{one}" for one in attributes.get("class", "").lower().split()[:20]]
        for key, value in list(attributes.items())[:20]:
            marks += [f"[{key}]", f"[{key}={value.lower()}]"]
        if attributes.get("id"):
            marks.append("#" + attributes["id"].lower())
        keys = [("", ""), (name, ""), *((tag, mark) for mark in marks for tag in ("", name))]
        return {key: value for one in keys for key, value in self._rules.get(one, {}).items()}


def _blocks(css: str) -> Iterator[tuple[str, str]]:
    """The selectors and rules that hold on a screen whatever its size."""
    opened: list[str] = []
    conditions = 0
    for piece in _BLOCK.finditer(css):
        said = piece[1].strip().lower()
        if piece[2] == "{":
            said = said.rpartition(";")[2].strip()
            opened.append(said)
            conditions += _is_condition(said)
        elif opened:
            selectors = opened.pop()
            conditions -= _is_condition(selectors)
            if not conditions and not selectors.startswith("@"):
                yield selectors, piece[1]


def _is_condition(said: str) -> bool:
    return said.startswith("@") and not _ALWAYS.fullmatch(said)


_LENGTH = re.compile(r"([-+]?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}))(px|pt|em|rem|ex|ch|vw|vh|%)?")
_PIXELS = {
    "px": 1.0,
    "pt": 1.3,
    "em": 16.0,
    "rem": 16.0,
    "ex": 8.0,
    "ch": 8.0,
    "vw": 10.0,
    "vh": 10.0,
    "%": 10.0,
}
_PLACES = ("left", "right", "top", "bottom", "inset", "text-indent", "margin-left", "margin-top", "margin")
_CALLS = re.compile(r"([a-z0-9-]{1,20})\(([^()]{0,200})\)")
_OFF, _BEYOND = -500.0, 2000.0  # pixels before and behind a page
_TINY = 2.0  # pixels of a letter
_FAINT = 0.05


def is_out_of_sight(rules: Rules) -> bool:
    """Whether a browser shows nothing of an element for its size, place or opacity."""
    if rules.get("display") == "none" or rules.get("visibility") in ("hidden", "collapse"):
        return True
    if rules.get("content-visibility") == "hidden" or _number(rules.get("opacity", "1")) <= _FAINT:
        return True
    letters = rules.get("font-size") or rules.get("font", "")
    sizes = _lengths(letters, percent=0.16)
    if sizes and sizes[0] <= (_TINY if "font-size" in rules else 0.0):
        return True
    return _has_no_room(rules) or _is_elsewhere(rules) or _is_cut_away(rules)


def _has_no_room(rules: Rules) -> bool:
    least = 1.0 if "hidden" in rules.get("overflow", "") or "clip" in rules.get("overflow", "") else 0.0
    sides = [
        _lengths(rules.get(key, ""))[:1] for key in ("width", "height", "max-width", "max-height", "zoom")
    ]
    return any(side and side[0] <= least for side in sides)


def _is_elsewhere(rules: Rules) -> bool:
    places = [size for key in _PLACES if key in rules for size in _lengths(rules[key])]
    return any(size <= _OFF or size >= _BEYOND for size in places)


def _is_cut_away(rules: Rules) -> bool:
    """Whether a transformation, a clip or a filter leaves nothing."""
    if _number(rules.get("scale", "1")) == 0:
        return True
    said = " ".join(rules.get(key, "") for key in ("transform", "clip", "clip-path", "filter"))
    for call in _CALLS.finditer(said):
        name, sizes = call[1], _lengths(call[2], percent=1.0)
        first = sizes[0] if sizes else 1.0
        if name.startswith("scale") and 0.0 in sizes:
            return True
        if name.startswith("translate") and any(size <= _OFF or size >= _BEYOND for size in sizes):
            return True
        if name in ("rotatex", "rotatey") and abs(first) == 90.0:
            return True
        if name in ("circle", "ellipse", "opacity") and first <= _FAINT:
            return True
        if name == "inset" and "%" in call[2] and first >= 50.0:
            return True
        if name in ("rect", "polygon") and sizes and len(set(sizes)) == 1:
            return True
    return False


def _number(said: str) -> float:
    found = _lengths(said, percent=0.01, plain=1.0)
    return found[0] if found else 1.0


def _lengths(said: str, percent: float = 10.0, plain: float = 1.0) -> list[float]:
    """The lengths in a value in pixels, roughly."""
    return [
        float(found[1]) * (plain if not found[2] else percent if found[2] == "%" else _PIXELS[found[2]])
        for found in _LENGTH.finditer(said[:200])
    ]


_NAMES = {
    "white": "ffffff",
    "snow": "fffafa",
    "ivory": "fffff0",
    "ghostwhite": "f8f8ff",
    "whitesmoke": "f5f5f5",
    "floralwhite": "fffaf0",
    "mintcream": "f5fffa",
    "azure": "f0ffff",
    "black": "000000",
}
_TOKEN = re.compile(r"[a-z-]{1,40}\([^()]{0,100}\)|[#\w-]{1,40}")
_PLAIN = frozenset({"none", "transparent", "inherit", "initial", "unset", "currentcolor"})
_ALIKE = 16  # of 255, in each of red, green and blue
_CLEAR: tuple[int, ...] = ()


def behind(rules: Rules, outer: str | None) -> str | None:
    """The colour behind the letters of an element inside of `outer`; None for a picture or what is not known."""
    said = rules.get("background-color", rules.get("background", ""))
    if "url(" in said or "gradient(" in said:
        return None
    token = _TOKEN.search(said)
    if token is None or token.group() in _PLAIN or colour(token.group()) == _CLEAR:
        return outer
    return token.group()


def has_no_contrast(rules: Rules, back: str | None) -> bool:
    """Whether letters have the colour of what is behind them."""
    said = rules.get("-webkit-text-fill-color") or rules.get("color")
    if not said or said in ("inherit", "initial", "unset"):
        return False
    letters = colour(said)
    if letters == _CLEAR or said == back:
        return True
    other = colour(back) if back is not None else None
    return bool(letters and other) and all(
        abs(one - two) <= _ALIKE for one, two in zip(letters or (), other or (), strict=True)
    )


def colour(said: str) -> tuple[int, ...] | None:
    """Red, green and blue; nothing for a transparent colour, None for one that is not known."""
    if said in ("transparent", "none"):
        return _CLEAR
    digits = _NAMES.get(said, said[1:] if said.startswith("#") else "")
    if digits:
        if not re.fullmatch(r"[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8}", digits):
            return None
        full = "".join(2 * one for one in digits) if len(digits) < 6 else digits
        parts = [int(full[at : at + 2], 16) for at in range(0, len(full), 2)]
        return _CLEAR if len(parts) == 4 and parts[3] <= _FAINT * 255 else tuple(parts[:3])
    call = re.fullmatch(r"(rgb|hsl)a?\(([^()]{0,100})\)", said)
    found = _LENGTH.findall(call[2].replace("deg", "")) if call is not None else []
    if call is None or not 3 <= len(found) <= 4:
        return None
    values = [float(value) for value, _ in found]
    if len(found) == 4 and values[3] * (0.01 if found[3][1] else 1.0) <= _FAINT:
        return _CLEAR
    if call[1] == "hsl":
        made = colorsys.hls_to_rgb(values[0] / 360 % 1, min(values[2] / 100, 1), min(values[1] / 100, 1))
        return tuple(round(255 * part) for part in made)
    return tuple(
        round(min(value * (2.55 if unit else 1.0), 255))
        for value, (_, unit) in zip(values, found[:3], strict=False)
    )[:3]
