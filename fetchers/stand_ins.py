"""Whether a page that says hardly anything stands in another's place, by how it is made, whatever its words.

Few pages with content have so little text and no figure in it. Of those, marks decide, each worth points: what
templates call their elements, a status code or a host for a title, links that lead to the start page alone or nowhere,
an order not to index the page, a script that loads it anew. Where there is what content is made of (articles, tables,
quotations), only a template's name decides; a description and links that lead on weigh against it. What it says counts
for nothing: a page about pages, however short, says what it says.
"""

import re
from typing import Literal

from selectolax.lexbor import LexborHTMLParser, LexborNode

from adjudge.fetchers.notices import Notice, NoticeState, has_figures, parts

# Characters: of the text of a page, and of what it shows outside links and forms.
_MOST, _MOST_SHOWN = 800, 400
_ENOUGH = 3
_SURE = 3
_MOST_NAMED = 1_000


def _template(state: NoticeState, names: str) -> tuple[NoticeState, re.Pattern[str]]:
    return state, re.compile(rf"(?:^|[\s_-])(?:{names})(?![a-z0-9])", re.I | re.X)


# What templates call notices, in class names and ids, whatever the language of the page.
_TEMPLATES = (
    _template(
        "missing",
        r"""(?:error|err|page|path|template|status|http|view|layout|is|p|s) [_-]{0,2} 4(?:04|10)
        | 4(?:04|10) [_-]? (?:error|page|wrap\w{0,9}|content|container) | (?:page|error|post)? [_-]? not [_-]? found
        | not [_-]? found [_-]? page | cms [_-] no [_-]? route | domain [_-] (?:for [_-] sale|parking|parked)
        | parked [_-] (?:domain|page)""",
    ),
    _template(
        "failed",
        r"(?:error|page|status|http) [_-]{0,2} 5\d\d | maintenance (?:[_-](?:mode|page))? | server [_-] error",
    ),
    _template(
        "wall",
        r"""(?:error|page|status|http) [_-]{0,2} 40[13] | access [_-]? denied | forbidden | no [_-]? captcha
        | challenge [_-] (?:form|running|container|stage|page|wrapper) | login [_-] (?:page|required)
        | (?:cookie|consent|privacy|login|auth|ad|adblock|age|geo|reg|registration) [_-]? (?:wall|gate)
        | waiting [_-]? room | age [_-] verif\w{1,9} | geo [_-]? block\w{0,9}""",
    ),
    _template(
        "teaser",
        r"pay [_-]? wall | (?:subscri(?:be|ption|ber)|premium) [_-] (?:wall|gate) | meter [_-] wall",
    ),
    _template(
        "empty",
        r"""error [_-]? page | page [_-]? error | (?:old|outdated|unsupported) [_-]? browser
        | browser [_-]? (?:upgrade|warning|outdated)""",
    ),
)
# Behind a round number, things are counted.
_CODE = re.compile(
    r"(?:[^\W\d]{1,40}[ :]{0,3})?(40[1-4]|410|429|451|50[234]|500(?! ))(?:[ :–-]{1,3}[^\W\d]{1,40}){0,3}"
)
_OF_CODES: dict[str, NoticeState] = {"404": "missing", "410": "missing"}
_SUBSTANCE = (
    "article, blockquote, table, pre, code, dl, figure, time, video, audio, textarea, [itemprop], "
    'meta[property="og:type"][content=article], meta[name^=citation_]'
)
_DESCRIBED = 'meta[name=description i][content], meta[property="og:description" i][content]'
_AROUND = "nav a, header a, footer a"
_NO_LINK = re.compile(r"#|javascript:", re.I)
_HOME = re.compile(r"(?:(?:https?:)?//[^/?#]{1,300})?/?(?:index\.\w{1,5})?|/[a-z]{2}(?:-[a-z]{2})?/?", re.I)
_HOST = re.compile(r"(?:[\w-]{1,63}\.){1,9}[a-z]{2,20}", re.I)
_RELOADS = re.compile(r"location\.reload|document\.cookie\s{0,9}=|history\.go\(0\)")


def stand_in(title: str, heading: str, text: str, shown: str, source: str) -> Notice | None:
    """The notice that a page is by its make; None if it is none. `shown` is its text outside links and forms."""
    if len(text) > _MOST or len(shown) > _MOST_SHOWN or has_figures(shown) or not shown:
        return None
    page = LexborHTMLParser(source)
    state, marks = _named(page)
    if not marks and page.css_first(_SUBSTANCE) is not None:
        return None
    points, leads = _SURE * len(marks), _leads(page)
    titles = [*parts(title), *parts(heading)]
    code = next((match[1] for each in titles if (match := _CODE.fullmatch(each))), "")
    if code and leads != "on":
        state = state or _OF_CODES.get(code, "failed" if code[0] == "5" else "wall")
        points, marks = points + _SURE, [*marks, f"the status {code} for a title"]
    found = (
        (2, "no link but to the start page", leads == "home"),
        (1, "no link in it", leads == "nowhere"),
        (1, "a host for a title", any(map(_HOST.fullmatch, titles))),
        (1, "not to be indexed", any(map(_is_unindexed, page.css("meta[name=robots i]")))),
        (1, "a script that loads it anew", any(_RELOADS.search(one.text()) for one in page.css("script"))),
        (1, "a wait", shown.endswith(("…", "..."))),
        (1, "a script", page.css_first("a[href]") is None and page.css_first("script") is not None),
    )
    points += sum(worth for worth, _, there in found if there)
    points -= (leads == "on") + (page.css_first(_DESCRIBED) is not None)
    if points < _ENOUGH:
        return None
    return Notice(
        state or "empty",
        f"hardly any text, and {', '.join([*marks, *(what for _, what, there in found if there)])}",
    )


def _named(page: LexborHTMLParser) -> tuple[NoticeState | None, list[str]]:
    """What the page is by its template's name for it, and that name."""
    for node in page.css("[class], [id]")[:_MOST_NAMED]:
        names = f"{node.attributes.get('class') or ''} {node.attributes.get('id') or ''}"[:500]
        for state, pattern in _TEMPLATES:
            if found := pattern.search(names):
                return state, [f"an element called {found[0].strip()[:40]}"]
    return None, []


def _is_unindexed(meta: LexborNode) -> bool:
    return "noindex" in (meta.attributes.get("content") or "").lower()


def _leads(page: LexborHTMLParser) -> Literal["on", "home", "nowhere"]:
    """Where the links outside navigation lead: "on" if any does so, "home" if all lead to the start page."""
    around = {link.mem_id for link in page.css(_AROUND)}
    targets = [link.attributes.get("href") or "" for link in page.css("a[href]") if link.mem_id not in around]
    targets = [target for each in targets if (target := each.strip()) and not _NO_LINK.match(target)]
    if not targets:
        return "nowhere"
    return "home" if all(map(_HOME.fullmatch, targets)) else "on"
