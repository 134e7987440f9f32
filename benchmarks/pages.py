"""Realistic HTML documents from a seed: the same `count` and `seed` give the same bytes everywhere.

Each has 30 to 50 KB as publishers serve it: styles, scripts and JSON-LD in the head, menus, a body, related links,
a footer. Of every four documents, two are articles (headings, paragraphs with links, figures, a list, a table,
comments), one is reference documentation (sections, code with highlighting, definitions) and one a discussion.
"""

import json
import random
from dataclasses import dataclass


def _listed(words: str) -> list[str]:
    return words.split()


_GLUE = _listed(
    "the of and to in a is that for it as was with be by on not he his but at are this have from or had an"
    " they which one were all their there been if more when will would who so no out up into than them then"
)
_ONSETS = _listed("b c d f g h l m n p r s t v w br cl cr dr fl gr pl pr sh st str th tr")
_VOWELS = _listed("a e i o u ai ea ee ou io")
_CODAS = _listed("n r s t l m nd nt st ck ng rm ve te ble tion ment")
_SECTIONS = _listed("World Politics Business Science Health Climate Technology Culture Sport Opinion Travel")


@dataclass(frozen=True)
class Document:
    """One page: its path on a server and its bytes."""

    path: str
    body: bytes
    title: str


def documents(count: int = 500, seed: int = 2026) -> list[Document]:
    """`count` documents of 30,000 to 50,000 bytes."""
    words = _vocabulary(random.Random(seed))
    return [
        _document(index, _Prose(random.Random(seed * 1_000_003 + index), words)) for index in range(count)
    ]


def _vocabulary(rng: random.Random) -> list[str]:
    return [
        "".join(rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(rng.randint(1, 3)))
        + rng.choice(_CODAS)
        for _ in range(4000)
    ]


class _Prose:
    """Sentences whose word frequencies fall off as in a language, nearly half of them function words."""

    def __init__(self, rng: random.Random, words: list[str]) -> None:
        self.rng = rng
        self._words = words

    def number(self, below: int = 10**6) -> int:
        return self.rng.randrange(below)

    def word(self) -> str:
        if self.rng.random() < 0.45:
            return self.rng.choice(_GLUE)
        return self._words[int(len(self._words) * self.rng.random() ** 3)]

    def phrase(self, low: int = 3, high: int = 9) -> str:
        return " ".join(self.word() for _ in range(self.rng.randint(low, high))).capitalize()

    def sentence(self) -> str:
        figure = f" {self.rng.randint(2, 9999):,} " if self.rng.random() < 0.2 else " "
        return f"{self.phrase(5, 14)},{figure}{self.phrase(4, 12).lower()}."

    def paragraph(self) -> str:
        return " ".join(self.sentence() for _ in range(self.rng.randint(2, 4)))

    def marked_up(self) -> str:
        """A paragraph with links and emphasis in it."""
        marks = (
            f'<a href="/story/{self.number()}?ref=body" class="inline" data-track="{self.number()}">%</a>',
            "<strong>%</strong>",
            "<em>%</em>",
            f'<a href="https://source-{self.number(99)}.example/" rel="noopener"><span>%</span></a>',
        )
        pieces = [self.rng.choice(marks).replace("%", self.phrase(1, 3).lower()) for _ in range(2)]
        return f"{self.sentence()} {self.phrase(3, 6)} {pieces[0]} {self.phrase(3, 8).lower()}, {pieces[1]}."


def _document(index: int, prose: _Prose) -> Document:
    title = prose.phrase(5, 10)
    target = prose.rng.randint(34_000, 48_000)
    layout = (_Article, _Article, _Reference, _Discussion)[index % 4](title, prose)
    frame = _head(index, title, prose), _navigation(prose), _aside(prose, layout.cards), _footer(prose)
    body = [layout.opening]
    size = sum(map(len, (*frame, layout.opening, layout.closing)))
    while size < target:
        body.append(layout.block())
        size += len(body[-1])
    head, navigation, aside, footer = frame
    page = (
        f'<!DOCTYPE html>\n<html lang="en">{head}<body class="page">\n{navigation}\n<div class="layout">'
        f'<main id="main">{"".join(body)}{layout.closing}</main>\n{aside}</div>\n{footer}</body></html>'
    )
    return Document(f"/articles/{index:05d}", page.encode(), title)


class _Article:
    cards = 26

    def __init__(self, title: str, prose: _Prose) -> None:
        self._prose = prose
        self.opening = (
            f'<article class="story"><div class="body"><h1 class="headline">{title}</h1>'
            f'<div class="meta"><span class="byline">By <a href="/by/1">{prose.phrase(2, 2)}</a></span>'
            f'<time datetime="2026-03-01">1 March 2026</time></div>{_table(prose)}{_list(prose)}'
        )
        self.closing = f"</div></article>{_comments(prose)}"

    def block(self) -> str:
        prose, kind = self._prose, self._prose.rng.random()
        if kind < 0.12:
            return f'<h2 id="h{prose.number()}">{prose.phrase(3, 7)}</h2>\n'
        if kind < 0.17:
            return f"<blockquote><p>{prose.sentence()}</p></blockquote>\n"
        if kind < 0.25:
            return (
                f'<figure class="media"><div class="frame"><picture><source srcset="/i/{prose.number()}.webp">'
                f'<img src="/i/{prose.number()}.jpg" alt="{prose.phrase()}" loading="lazy"></picture></div>'
                f"<figcaption>{prose.phrase(6, 12)}</figcaption></figure>\n"
            )
        if kind < 0.32:
            return (
                f'<div class="ad-slot"><div id="a{prose.number()}"><span>Advertisement</span></div></div>\n'
            )
        return f"<p>{prose.marked_up() if kind < 0.8 else prose.paragraph()}</p>\n"


class _Reference:
    cards = 4

    def __init__(self, title: str, prose: _Prose) -> None:
        self._prose = prose
        contents = "".join(
            f'<li class="toc"><a href="#s{n}">{prose.phrase(1, 3)}</a></li>' for n in range(30)
        )
        self.opening = f'<h1 class="title">{title}</h1><nav class="contents"><ul>{contents}</ul></nav>'
        self.closing = ""

    def block(self) -> str:
        prose, kind = self._prose, self._prose.rng.random()
        if kind < 0.2:
            lines = "\n".join(
                "".join(f'<span class="{mark}">{prose.word()}</span> ' for mark in "knopn") for _ in range(6)
            )
            return f'<div class="highlight"><pre class="code"><code>{lines}</code></pre></div>\n'
        if kind < 0.4:
            return (
                f"<dl><dt><code>{prose.word()}</code></dt><dd><p>{prose.sentence()}</p></dd>"
                f"<dt><code>{prose.word()}</code></dt><dd><p>{prose.sentence()}</p></dd></dl>\n"
            )
        return (
            f'<section class="method" id="m{prose.number()}"><h3><a href="#m">{prose.phrase(1, 3)}</a></h3>'
            f'<div class="docblock"><p>{prose.sentence()} {prose.phrase(2, 4)} <code>{prose.word()}</code> '
            f'{prose.phrase(3, 5).lower()} <a href="/x"><code>{prose.word()}</code></a>.</p></div></section>\n'
        )


class _Discussion:
    cards = 8

    def __init__(self, title: str, prose: _Prose) -> None:
        self._prose = prose
        self.opening = f'<h1 class="topic">{title}</h1><div class="posts">'
        self.closing = "</div>"

    def block(self) -> str:
        prose = self._prose
        quote = f"<blockquote><p>{prose.sentence()}</p></blockquote>" if prose.rng.random() < 0.2 else ""
        return (
            f'<div class="post" id="p{prose.number()}"><div class="author"><a href="/u/{prose.number(999)}">'
            f'{prose.word()}</a><span class="points">{prose.number(999)}</span><time>{prose.number(23)} h</time></div>'
            f'<div class="content">{quote}<p>{prose.marked_up()}</p></div>'
            '<ul class="actions"><li><a href="#">Reply</a></li><li><a href="#">Share</a></li></ul></div>\n'
        )


def _head(index: int, title: str, prose: _Prose) -> str:
    summary = prose.sentence()
    ld = {"@context": "https://schema.org", "@type": "NewsArticle", "headline": title, "description": summary}
    rules = "".join(
        f".c{n}-{prose.number(999)}{{margin:{n}px;color:#{prose.number(16**6):06x}}}\n" for n in range(24)
    )
    script = "".join(
        f"q.push(['set',{n},{{id:'{prose.number(10**9)}',v:{n / 7:.4f}}}]);\n" for n in range(24)
    )
    return (
        f'<head><meta charset="utf-8"><title>{title} | The Daily Sample</title>'
        f'<meta name="description" content="{summary}"><meta property="og:title" content="{title}">'
        f'<meta property="og:description" content="{summary}"><meta name="viewport" content="width=600">'
        f'<link rel="canonical" href="/articles/{index:05d}"><link rel="stylesheet" href="/static/site.css">'
        f'<style>{rules}</style><script type="application/ld+json">{json.dumps(ld)}</script>'
        f"<script>window.q=window.q||[];{script}</script></head>"
    )


def _navigation(prose: _Prose) -> str:
    items = "".join(
        f'<li class="nav-item nav-{name.lower()}"><a class="nav-link" href="/{name.lower()}"><span>{name}</span></a>'
        f'<div class="flyout" hidden><ul class="sub">{_links("sub-item", 6, prose)}</ul></div></li>\n'
        for name in _SECTIONS
    )
    tools = "".join(
        f'<li class="tool"><button type="button" class="btn btn-{n}"><svg class="icon"><path d="M0 {n}h9"/></svg>'
        f'<span class="label">{prose.phrase(1, 1)}</span></button></li>'
        for n in range(8)
    )
    return (
        '<header class="top"><div class="bar"><a href="/" class="logo"><span>The Daily Sample</span></a>'
        f'<ul class="tools">{tools}</ul></div><nav class="main-nav"><ul class="menu">{items}</ul></nav></header>'
    )


def _links(kind: str, count: int, prose: _Prose) -> str:
    return "".join(
        f'<li class="{kind}"><a class="{kind}-a" href="/{prose.number(9999)}">'
        f"<span>{prose.phrase(1, 2)}</span></a></li>"
        for _ in range(count)
    )


def _table(prose: _Prose) -> str:
    header = "".join(f"<th>{prose.phrase(1, 2)}</th>" for _ in range(5))
    rows = "".join(
        "<tr>" + "".join(f"<td>{prose.rng.uniform(0, 999):.1f}</td>" for _ in range(5)) + "</tr>\n"
        for _ in range(8)
    )
    return f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>\n"


def _list(prose: _Prose) -> str:
    return "<ul>" + "".join(f"<li>{prose.sentence()}</li>" for _ in range(6)) + "</ul>\n"


def _aside(prose: _Prose, count: int) -> str:
    cards = "".join(
        f'<div class="card card-{n % 3}"><div><a href="/s/{n}"><img src="/t/{n}.jpg" alt=""></a></div>'
        f'<div class="card-text"><span class="kicker"><a href="/k/{n}">{prose.phrase(1, 1)}</a></span>'
        f'<h4 class="card-title"><a href="/s/{n}"><span>{prose.phrase(4, 8)}</span></a></h4>'
        f'<div class="card-meta"><span class="age"><time>{n} hours ago</time></span><span class="dot">·</span></div>'
        "</div></div>\n"
        for n in range(count)
    )
    return f'<aside class="related"><h3>Related stories</h3><div class="grid">{cards}</div></aside>'


def _comments(prose: _Prose) -> str:
    items = "".join(
        f'<div class="comment" id="c{n}"><div class="who"><span class="author">{prose.phrase(1, 2)}</span></div>'
        f'<p>{prose.sentence()}</p><div class="act"><a href="#c{n}" class="reply">Reply</a><span>{n}</span></div>'
        "</div>\n"
        for n in range(10)
    )
    return f'<section id="comments" class="comments"><h3>Comments</h3>{items}</section>'


def _footer(prose: _Prose) -> str:
    columns = "".join(
        f'<div class="column"><h5 class="column-title">{name}</h5><ul>{_links("foot", 6, prose)}</ul></div>'
        for name in _SECTIONS[:8]
    )
    return f'<footer class="bottom">{columns}<p>© 2026 The Daily Sample</p></footer>'
