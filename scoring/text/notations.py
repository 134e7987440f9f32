"""Marks, links and lists of other notations as Markdown has them.

Links of Slack, wikis, Org, reStructuredText, AsciiDoc, BBCode and LaTeX; citations, lists and sections of LaTeX and
reStructuredText; raised numbers; numbers in braces, in angle brackets or behind a sign where a list has them. Linear in
the text: repetitions are bounded.
"""

import re
from collections.abc import Set

from adjudge.scoring.text.citation_marks import SMALL, SMALL_SIGNS
from adjudge.scoring.text.signs import found_at, replaced_at

__all__ = ["in_markdown"]

# Raised numbers in other forms than a tag around numbers: brackets or links within it, LaTeX, Pandoc.
_NUMBERS = r"\d{1,3}(?:\s?[,;–-]\s?\d{1,3}){0,20}"
_RAISED = re.compile(
    r"<sup>\s?(?P<marks>(?:\\?\[{1,2}+[^\[\]<>\n]{1,80}+\]{1,2}+(?:\([^\s()<>]{1,2000}+\))?[\s,;]{0,3}+){1,20})</sup>"
    r"|\[<sup>\s?(?P<linked>\\?\[?\d{1,4}\\?\]?)\s?</sup>\](?=\()"
    rf"|\$\s?\{{?\}}?\^\{{\s?(?:\\text\{{)?(?P<square>\[)?(?P<latex>{_NUMBERS})\]?\s?\}}{{1,2}}\s?\$"
    rf"|(?<=[^\s^])\^(?P<bracketed>\[)?(?P<carets>{_NUMBERS})\]?\^(?!\^)"
    r"|⁽(?P<round>[⁰¹²³⁴-⁹]{1,3})⁾"
)
_RAISED_PARTS = ("<sup>", "^", "⁽")
_LONGEST = 2_000  # characters of an address behind its "://"
_LINK = rf"https?://[^\s<>|\[\]{{}}`\"]{{1,{_LONGEST}}}"
_LINKED = re.compile(
    rf"(?:<|\[\[)(?P<piped>{_LINK})\|(?P<one>[^<>|\[\]\n]{{1,300}})(?:>|\]\])"
    rf"|\[\[(?P<org>{_LINK})\]\[(?P<two>[^\[\]\n]{{1,300}})\]\]"
    rf"|`(?P<three>[^`<>\n]{{1,300}}) <(?P<rst>{_LINK})>`_{{1,2}}"
    rf"|\[url=[\"']?(?P<code>{_LINK})[\"']?\](?P<four>[^\[\]\n]{{1,300}})\[/url\]"
    rf"|\\href\{{(?P<href>{_LINK})\}}\{{(?P<five>[^{{}}\n]{{1,300}})\}}|\\url\{{(?P<url>{_LINK})\}}"
    rf"|&lt;(?P<escaped>https?://(?>(?:(?!&[lg]t;)[^\s<>]){{1,2000}}))&gt;"
    # no mark behind an address, and no part of it: "https://...[1]", "https://...?a[b]=c"
    rf"|(?<![(<\"'=])(?P<doc>{_LINK}(?<![.,;:!?)]))\[(?!\^?[\w.:-]{{0,16}}[ _]?\d{{1,4}}[\],;†])(?=[^\[\]\n]*[^\W\d_])"
    r"(?P<six>[^\[\]\n]{1,300})\](?![(=&%\[\w/])"
    r"|(?<=\))\{:?[ .#\w=\"'-]{1,100}\}",
    re.IGNORECASE,
)
# Where a match of the pattern above can begin, as are the other signs.
_LINKED_SIGN = re.compile(
    r"[<\[`\\&hH{](?:(?<=[hH])(?=[tT][tT][pP])|(?<=[<\[])(?=[hH\[uU])|(?<=`)|(?<=\\)(?=[hHuU])|(?<=&)(?=[lL])"
    r"|(?<=\){))"
)
_LINKED_PARTS = ("|", "[[", ">`_", "[url=", "\\href{", "\\url{", "&lt;http", "){")
# Words behind a path that name what is to be filled in: "https://forum.example/threads/[thread-id]".
_SLOT = re.compile(r"[a-z\d._-]+")
_HOST_SLASHES = 3  # of an address without a path
_BEHIND = re.compile(r"\[(?<=[^\s\[\]()]\[)")
_WORDS = re.compile(r"[^\]\n]{0,300}[a-z]", re.IGNORECASE)
_NO_ADDRESS = re.compile(r"[\s\[\]()]")

_LATEX = re.compile(
    r"(?P<gap>~)?\\(?:no|paren|auto|foot|text|super|full|short)?cite(?:alp|author|yearpar|year)?[tps]?\*?"
    r"(?:\[[^\[\]\n]{0,80}\]){0,2}\{(?P<keys>[^{}\n]{1,400})\}"
    r"|^[ \t]{0,8}\\bibitem(?:\[[^\[\]\n]{0,80}\])?\{(?P<key>[^{}\n]{1,40})\}\s{0,8}"
    r"|^[ \t]{0,8}\\(?P<depth>(?:sub){0,2})section\*?\{(?P<title>[^{}\n]{1,200})\}"
    r"|^[ \t]{0,8}\\item(?:\[[^\[\]\n]{0,40}\])?[ \t]{1,4}(?P<item>)"
    r"|(?P<bibliography>\\begin\{thebibliography\}(?:\{[^{}\n]{0,20}\})?)"
    r"|\\(?:begin|end)\{[a-z*]{1,30}\}",
    re.MULTILINE,
)
_LATEX_PARTS = ("\\cite", "cite{", "cite[", "\\bibitem", "section{", "\\item")
_RST = re.compile(
    r"^\.\. \[#?(?P<defined>[\w.-]{1,40})\][ \t]{1,4}|\[#?(?P<used>[\w.-]{1,40})\]_(?!\w)", re.MULTILINE
)

_TARGETS = re.compile(
    rf"^\.\. _(?P<name>[^:`\n]{{1,80}}): {{1,4}}(?P<url>{_LINK})[ \t]{{0,4}}$", re.MULTILINE
)
_TARGETED = re.compile(r"`([^`<>\n]{1,80})`_{1,2}(?!\w)")
_ASCIIDOC = re.compile(
    r"\[\[\[(?P<key>[\w.:-]{1,40})(?:,[^\[\]\n]{0,80})?\]\]\]|<<(?P<used>[\w.:-]{1,40})(?:,[^<>\n]{0,80})?>>"
    rf"|footnote:\[[^\[\]\n]{{0,300}}?(?P<url>{_LINK})[^\[\]\n]{{0,100}}\]"
)
# Links of a wiki, and its templates of works.
_WIKI = re.compile(
    rf"(?<![\[\w])\[(?P<url>{_LINK}) (?P<words>(?:(?!://)[^\[\]\n]){{1,300}})\](?![(\[\]])"
    rf"|\{{\{{[Cc]it(?:e|ation)[^{{}}]{{0,400}}?\| ?url ?= ?(?P<cited>{_LINK})[^{{}}]{{0,400}}\}}\}}"
)
_WIKI_SIGN = re.compile(r"[\[{](?=http|\{)")
# An entry below the text that begins with its raised number.
_RAISED_ENTRY = re.compile(r"^[ \t>]{0,4}([⁰¹²³⁴-⁹]{1,3})[ \t]{1,4}(?=[^\n]{0,400}?://)", re.MULTILINE)

# Numbers in signs that stand for other things too: these are marks where each of them is the number of an entry.
_NUMBERED = re.compile(r"[{<#^※]\d")
_LIST = r"\d{1,3}(?>(?:\s?[,;]\s?\d{1,3}){0,20})"
_SIGNED = re.compile(
    rf"(?<![\w\\^_$&/}}#])(?:(?P<brace>(?:\{{{_LIST}\}}){{1,9}})|<(?P<angle>{_LIST})>"
    r"|\[\#(?P<square>\d{1,3}(?:\s?[,;]\s?\#?\d{1,3}){0,20})\]|\[?\#(?P<sign>\d{1,3})(?![\w\]]))"
    r"|※(?P<kome>\d{1,3})|(?:(?<=[^\W\d_]{3})|(?<=[.!?,)”\"*]))\^(?P<caret>\d{1,3})(?![\w^\]])"
)
_SIGNED_SIGN = re.compile(r"[{<\[#^※](?=[\d#])")
_LINK_LINE = re.compile(r"^\[{1,2}(\d{1,3})\]{1,2}\((https?://[^\s()<>]{1,2000})\)[ \t]{0,4}$", re.MULTILINE)
_BARE_MARK = re.compile(r"\[(\d{1,3})\](?!\]?\()")
_SQUARE = str.maketrans("{}", "[]")
_ENTRY = re.compile(
    r"^[ \t>*+-]{0,8}+(?:\*\*)?+(?:(?P<sign>\[?#)|[{<\[(^※]{0,2})(?P<number>\d{1,3})(?!\d)[^\n]{0,400}?://",
    re.MULTILINE,
)


# Inline notes and attributes of Pandoc, notes that lead back to their marks, and spans of marks.
_INLINE_NOTE = re.compile(
    r"\^\[[^\[\]\n]{0,300}?<?(?P<url>https?://[^\s<>\[\]]{1,2000}+)>?[^\[\]\n]{0,100}\]"
)
_DIVISION = re.compile(
    r"^:{3,20}[^\n]{0,200}$|(?<=\S)[ \t]{1,4}\{[#.][^{}\n]{1,100}\}(?=[ \t]{0,4}$)", re.MULTILINE
)
_WAY_BACK = re.compile(
    r"^[ \t]{0,3}\[{1,2}\\?\[?(\d{1,3})\\?\]?\]{1,2}\(#[^()\s]{0,60}ref[^()\s]{0,60}\)", re.MULTILINE
)
_SPAN = re.compile(r"(?<!\])\[(\d{1,3})\] ?[–—-] ?\[(\d{1,3})\](?![\[(:])")
# Letters and signs as notes are marked by below a table, where a line with an address begins with the same.
_NOTE = re.compile(
    r"^[ \t>]{0,4}(?:\|[ \t]{0,4})?(?:<sup>(?P<raised>[a-z]|[†‡§¶]{1,2})</sup>|(?P<sign>[†‡§¶]{1,2}))(?=[^\n]{0,400}?://)",
    re.MULTILINE,
)
_NOTED = re.compile(
    r"<sup>(?P<raised>(?:[a-z]|[†‡§¶]{1,2})(?: ?, ?(?:[a-z]|[†‡§¶]{1,2})){0,9})</sup>"
    r"|(?<=\S)(?P<sign>[†‡§¶]{1,2})(?![\w†‡§¶])"
)


def in_markdown(text: str) -> str:
    """`text` with what other notations write for marks, links and lists as Markdown has it."""
    if "\\" in text and any(part in text for part in _LATEX_PARTS):
        text = _LATEX.sub(_latex, text)
    if "://" in text and (any(part in text for part in _LINKED_PARTS) or _has_titled_address(text)):
        text = replaced_at(_LINKED_SIGN, _LINKED, _link, text)
    text = text.replace("][http", "] [http")
    if "`_" in text and ".. _" in text:
        text = _with_targets(text)
    if "<<" in text or "footnote:[" in text:
        text = _ASCIIDOC.sub(
            lambda found: f" ({found['url']})" if found["url"] else f"[{found['key'] or found['used']}]", text
        )
    if "[http" in text or "{{" in text:
        text = replaced_at(_WIKI_SIGN, _WIKI, _wiki_link, text)
    if "://" in text and any(sign in text for sign in SMALL_SIGNS):
        text = _RAISED_ENTRY.sub(lambda found: f"[{found[1].translate(SMALL)}] ", text)
    if "]_" in text:
        text = _RST.sub(lambda found: f"[{found['defined'] or found['used']}] ", text)
    if any(part in text for part in _RAISED_PARTS):
        text = _RAISED.sub(_raised, text)
    if _NUMBERED.search(text):
        text = _with_signed(text)
    if "](http" in text:
        text = _with_link_lines(text)
    if "^[" in text:
        text = _INLINE_NOTE.sub(r" (\g<url>)", text)
    if ":::" in text or "{#" in text or "{." in text:
        text = _DIVISION.sub("", text)
    if "](#" in text:
        text = _WAY_BACK.sub(r"[\1] ", text)
    if "]-" in text or "]–" in text or "] –" in text or "]—" in text:
        text = _SPAN.sub(r"[\1-\2]", text)
    return _with_notes(text) if "</sup>" in text or any(sign in text for sign in "†‡§¶") else text


def _has_titled_address(text: str) -> bool:
    """Whether words in brackets stand right behind an address, as AsciiDoc writes a link."""
    for found in _BEHIND.finditer(text):  # the address first: a text of brackets has none
        address = text.rfind("://", max(found.start() - _LONGEST - 3, 0), found.start() - 1)
        if address < 0 or _NO_ADDRESS.search(text, address + 3, found.start()):
            continue
        if _WORDS.match(text, found.end()):
            return True
    return False


def _with_targets(text: str) -> str:
    """`text` with reStructuredText's names of addresses as links."""
    named = {found["name"].casefold(): found["url"] for found in _TARGETS.finditer(text)}

    def link(found: re.Match[str]) -> str:
        url = named.get(found[1].casefold())
        return f"[{found[1]}]({url})" if url else found[0]

    return _TARGETED.sub(link, _TARGETS.sub("", text)) if named else text


def _with_notes(text: str) -> str:
    """`text` with the letters and signs that lead to a line with an address as footnotes.

    A line that begins with a sign which is no mark anywhere is what it says: "§ 823 BGB".
    """
    begin = {found["raised"] or found["sign"] for found in _NOTE.finditer(text)}
    if not begin:
        return text
    marks = _NOTED.finditer(_NOTE.sub("", text))
    signs = {sign for mark in marks for sign in _signs(mark, begin)} & begin

    def note(found: re.Match[str]) -> str:
        sign = found["raised"] or found["sign"]
        return f"\n{_footnote(sign)}: " if sign in signs else found[0]

    def foot(found: re.Match[str]) -> str:
        named = _signs(found, signs)
        return "".join(map(_footnote, named)) if signs.issuperset(named) else found[0]

    return _NOTED.sub(foot, _NOTE.sub(note, text))


def _signs(mark: re.Match[str], known: Set[str]) -> list[str]:
    """The signs of a mark: several with commas between, or two beside each other."""
    if mark["raised"]:
        return [one.strip() for one in mark["raised"].split(",")]
    return [mark["sign"]] if mark["sign"] in known else list(mark["sign"])


def _footnote(sign: str) -> str:
    return f"[^note-{'-'.join(str(ord(one)) for one in sign)}]"


def _link(found: re.Match[str]) -> str:
    """A link in another markup as one of Markdown; nothing for the attributes of a link."""
    doc = found["doc"] or ""
    if doc.endswith("/") and doc.count("/") > _HOST_SLASHES and _SLOT.fullmatch(found["six"]):
        return found[0]
    named = next(filter(None, map(found.group, ("piped", "org", "rst", "code", "href", "doc"))), None)
    words = next(filter(None, map(found.group, ("one", "two", "three", "four", "five", "six"))), "")
    bare = found["url"] or found["escaped"]
    return f"[{words}]({named})" if named else f"<{bare}>" if bare else ""


def _wiki_link(found: re.Match[str]) -> str:
    """A link of a wiki as one of Markdown; the address alone of a template."""
    return found["cited"] or f"[{found['words']}]({found['url']})"


def _latex(found: re.Match[str]) -> str:
    """A citation or an entry of LaTeX as labels in brackets, a section as a heading; nothing for an environment."""
    if found["keys"]:
        keys = "".join(f"[{key.strip()}]" for key in found["keys"].split(",") if key.strip())
        return f" {keys}" if found["gap"] else keys
    if found["key"]:
        return f"[{found['key']}] "
    if found["title"]:
        return f"#{'#' * (len(found['depth']) // 3 + 1)} {found['title']}"
    if found["item"] is not None:
        return "- "
    return "## References\n" if found["bibliography"] else ""


def _raised(found: re.Match[str]) -> str:
    """Raised numbers as brackets, links or a tag around numbers."""
    if found["marks"] or found["linked"]:
        return found["marks"] or "[" + found["linked"].strip("\\[] ") + "]"
    numbers = found["latex"] or found["carets"] or str(found["round"]).translate(SMALL)
    return f"[{numbers}]" if found["square"] or found["bracketed"] else f"<sup>{numbers}</sup>"


def _with_signed(text: str) -> str:
    """`text` with brackets around the numbers of marks in other signs."""
    listed = {"any": set[int](), "sign": set[int]()}
    for entry in _ENTRY.finditer(text):
        listed["sign" if entry["sign"] else "any"].add(int(entry["number"]))
    listed["any"] |= listed["sign"]
    named: dict[str, set[int]] = {}
    for found in found_at(_SIGNED_SIGN, _SIGNED, text) if listed["any"] else ():
        named.setdefault(str(found.lastgroup), set()).update(map(int, re.findall(r"\d+", found[0])))
    if 1 not in named.get("caret", ()):  # powers
        named.pop("caret", None)
    marks = {
        kind
        for kind, numbers in named.items()
        if numbers <= (listed["sign"] if kind == "sign" else listed["any"])
    }
    if not marks:
        return text
    return replaced_at(
        _SIGNED_SIGN, _SIGNED, lambda found: _bracketed(found) if found.lastgroup in marks else found[0], text
    )


def _with_link_lines(text: str) -> str:
    """`text` with lines that are only a numbered link as entries, where marks without addresses have their numbers."""
    lines = {found[1] for found in _LINK_LINE.finditer(text)}
    if len(lines) < 2 or not lines <= {found[1] for found in _BARE_MARK.finditer(text)}:
        return text
    return _LINK_LINE.sub(r"[\1] <\2>", text)


def _bracketed(found: re.Match[str]) -> str:
    return (
        f"[{found[str(found.lastgroup)].replace('#', '')}]"
        if found["brace"] is None
        else found[0].translate(_SQUARE)
    )
