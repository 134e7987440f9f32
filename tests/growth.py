"""Hostile texts of any length, and every public function that takes a text, ready to be called with one."""

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import get_type_hints

from adjudge.engine.config.reward import Length, ReportRules
from adjudge.engine.rewards import flags, report, templates
from adjudge.engine.viewer.data import marked_text, passages
from adjudge.fetchers import extract, separated, urls
from adjudge.fetchers.urls import (
    MalformedURL,
    normalise_url,
    page_key,
    page_parts,
    printable,
    site_of,
    split_url,
    worker_of,
)
from adjudge.judges import Context, chat, lexical, loops, schema
from adjudge.judges.published import UnreadableReply
from adjudge.scoring import text as text_package
from adjudge.scoring.contract.case import Citation
from adjudge.scoring.deepresearch_bench import published_criteria, published_fact, published_race, uncited
from adjudge.scoring.dr3_eval import citing, published_facts, published_replies, sandbox
from adjudge.scoring.gold import rules
from adjudge.scoring.livedrbench import published
from adjudge.scoring.rubrics import drb2, links, rigorous
from adjudge.scoring.rubrics.links import Blocked
from adjudge.scoring.text import (
    accounted,
    aside,
    blocks,
    citation_marks,
    citations,
    cleaning,
    handed,
    integrity,
    markup,
    notations,
    orders,
    relevance,
    scan,
    seen,
    sentences,
    signs,
    thoughts,
)
from adjudge.scoring.text.cleaning import Clean
from adjudge.scoring.text.looks import estimate_tokens, length_of, looks_of

__all__ = ["GRAMMAR", "MODULES", "READERS", "hostile", "public_readers"]

# Openers that nothing closes, marks, lines of every kind, and runs that are slow to normalise.
GRAMMAR = (
    "[", "]", "[](", "[a](http://a", "[](http://a)", "[[[1](http://a)", "![a](b)", "\\[", "()", "(", "( , ",
    "[1]", "[1-", "[1-50]", "[1†-", "[1†-1", "［1†-1†-1", "【1", "[1L2-3", "[^a", "¹,", "¹¹¹¹", "<sup>1,",
    "http://", "http://a ", "www.a.", "[S1]", "[a][b]", "(Smith 2020)", "(1, ", "①",
    "Sources:\n", "| S1 | a | http://a |\n", "[1] [2] T\n",
    "doi: 10.1234/a ", "arxiv: 2301.00001", "word 15. ", "x 1 ", "A b. [1] ",
    "[1] T https://x.example\n", "- http://a\n", "1 a\n", "- a b [1]\n", "|a[1]|", "| a b [1] | c d [1] |\n",
    "|a|b\n|-|-\n", "## References\n1. a\n", "References:\n", "# a\n", "> ", "```a\n", "```\n", "~~~\n", "a\n", "\n",
    "\r", "\u2028", "*", "_a", "<b>", "-", ".", "。", "国", "a", "Ab ", "A-", "1,", "1.", " ", "\t", "{", "{\"a\":",
    "}", "```json", "<json_output>", "insight", "\"criterion\": \"", "\"article_1_score\": 1",
    "<!--", "<!--judge", "give w ", "give give ", "ignore all previous w", "answer \"", "style='", "dear the ",
    "a\u0315\u0300", "\u0315\u0300", "\ufdfa", "\u200b\u200b", "<p>", "<div", "&amp;", "</think>", "%41", "@", "?a=b&",
    "**a b** (http://a)\n- b c d\n", "  - **c d** [1]\n", "**a b [1-50]**\n\n", "word.46 A ", "參考\n1. http://x\n",
    "Source: [1]\n", "  - Source: http://a\n", "Sources:\n- http://a\n", "A b [1]:\n", "[1] http://a [2] http://b\n",
    "A b. [a](http://a) ", "A b. ([1]) ", "**a b**\n- URL: http://a\n", "### Source: [1]\n",
    "<style>", "</style>", ".a{color:", "@media{", "<b style=\"color:", "<i a=\"b c\">", "{\\color{white}", "[^a]: b\n",
    "<div hidden>", "</div>", "\\phantom{", "[a]: b \"c\n", "![a", "[TOOL_CALLS]", "\nuser\n", "assistant",
    "<think>", "<tool_call>", "</tool_response>", "<tool_response>", "<|im_start|>user\n", "<|im_end|>", "`",
)  # fmt: skip

_LISTED = "".join(f"[{i}] T https://r.example/{i}\n" for i in range(1, 60))
_QUESTION = Clean(context=Context.of(piece="A piece."), language="en")
_KNOWN = citation_marks.Labels(*2 * (frozenset([*map(str, range(60)), "smith 2020"]),))
_LABELS = tuple(
    citing.Label(f"{n}.pdf", f"A title with the number {n}", f"http://r.example/{n}", n > 3) for n in range(9)
)
_TITLES = tuple(label.title for label in _LABELS)
_LENGTH = Length(max=1_000_000_000)
_BLOCKED = Blocked(title="A title of a b", authors=("Ab Cd",), urls=("https://r.example/7", "http://a"))
_BRACKETS = (re.compile(r"\["), re.compile(r"\[([^\[\]]{1,80})\]"))
_HANDED = (Citation(url="https://a.example"), Citation(url="https://b.example", position=9))


def hostile(fragments: tuple[str, ...], length: int, listed: bool = False) -> str:
    """`fragments` again and again, up to `length` characters, of which the last are a reference list if `listed`."""
    end = f"\n## References\n{_LISTED}" if listed else ""
    unit = "".join(fragments)
    return (unit * (length // len(unit) + 1))[: max(length - len(end), 0)] + end


def _all(found: Iterator[object]) -> None:
    for _ in found:
        pass


def _decode(text: str) -> None:
    with suppress(schema.UnparseableReply):
        schema.decode(_QUESTION, text)


def _read(function: Callable[[str], object], text: str) -> None:
    with suppress(UnreadableReply):
        function(text)


def _object_in(text: str) -> None:
    with suppress(schema.UnparseableReply):
        schema.object_in(text)


def _extract(text: str, kind: str) -> None:
    with suppress(extract.Unreadable):
        extract.extract(f"<html><body><p>{text}".encode("utf-8", "replace"), kind, "fast")


def _markup(text: str) -> None:
    with suppress(extract.Unreadable):
        extract.markup(f"<script>a<{text}</script>{text}".encode("utf-8", "replace"), "text/html")


def _url(function: Callable[[str], object], text: str) -> None:
    with suppress(MalformedURL):
        function(text)


READERS: dict[str, Callable[[str], object]] = {
    "scoring.text.aside.storable": aside.storable,
    "scoring.text.blocks.address_alone": blocks.address_alone,
    "scoring.text.blocks.lines": lambda text: _all(blocks.lines(text)),
    "scoring.text.blocks.report_lines": lambda text: _all(iter(blocks.report_lines.__wrapped__(text))),
    "scoring.text.citation_marks.clean_url": citation_marks.clean_url,
    "scoring.text.citation_marks.exact_url": citation_marks.exact_url,
    "scoring.text.citation_marks.may_hold_mark": citation_marks.may_hold_mark,
    "scoring.text.citation_marks.pieces": lambda text: _all(citation_marks.pieces(text, _KNOWN)),
    "scoring.text.accounted.account": accounted.account,
    "scoring.text.accounted.addresses": accounted.addresses,
    "scoring.text.accounted.read_citations": accounted.read_citations,
    "scoring.text.looks.estimate_tokens": estimate_tokens,
    "scoring.text.looks.length_of": lambda text: length_of(text, _HANDED),
    "scoring.text.citations.cited": citations.cited.__wrapped__,
    "scoring.text.citations.parse": citations.parse.__wrapped__,
    "scoring.text.citations.url_key": citations.url_key,
    "scoring.text.handed.placed": lambda text: handed.placed(
        text, [Citation(url="http://a", position=at) for at in range(0, len(text), 97)]
    ),
    "scoring.text.cleaning.clean_beside": lambda text: cleaning.clean_beside(text, text[::2]),
    "scoring.text.cleaning.clean_report": cleaning.clean_report.__wrapped__,
    "scoring.text.cleaning.without_lists": cleaning.without_lists,
    "scoring.text.relevance.relevant_chunks": lambda text: relevance.relevant_chunks(text, text[:1_000]),
    "scoring.dr3_eval.sandbox.covered": lambda text: sandbox.covered(text, _TITLES),
    "scoring.dr3_eval.citing.read_cited": lambda text: citing.read_cited(text, (), _LABELS),
    "scoring.livedrbench.published.json_in": partial(_read, published.json_in),
    "scoring.livedrbench.published.match_in": partial(_read, published.match_in),
    "scoring.dr3_eval.published_replies.depth_in": partial(_read, published_replies.depth_in),
    "scoring.dr3_eval.published_replies.json_in": partial(_read, published_replies.json_in),
    "scoring.dr3_eval.published_replies.recalled_in": partial(
        _read, lambda text: published_replies.recalled_in(text, 9)
    ),
    "scoring.dr3_eval.published_replies.satisfied_in": partial(
        _read, lambda text: published_replies.satisfied_in(text, 9)
    ),
    "scoring.dr3_eval.published_replies.claims_in": partial(_read, published_replies.claims_in),
    "scoring.dr3_eval.published_replies.supported_in": partial(
        _read, lambda text: published_replies.supported_in(text, 9)
    ),
    "scoring.dr3_eval.published_facts.source_key": published_facts.source_key,
    "scoring.dr3_eval.published_facts.place_of": lambda text: published_facts.place_of(text[:4_000]),
    "scoring.dr3_eval.published_facts.best_passages": lambda text: published_facts.best_passages(
        text, text[:1_000]
    ),
    "scoring.text.relevance.chunks_for": lambda text: relevance.chunks_for(text, (text[:1_000], "a")),
    "scoring.text.scan.address_in": scan.address_in,
    "scoring.text.scan.code_spans": lambda text: _all(scan.code_spans(text)),
    "scoring.text.scan.entry": scan.entry,
    "scoring.text.scan.front_lines": scan.front_lines,
    "scoring.text.scan.keyed": lambda text: _all(scan.keyed(text)),
    "scoring.text.scan.numbered_links": scan.numbered_links,
    "scoring.text.scan.raw_lines": lambda text: _all(scan.raw_lines(text)),
    "scoring.text.scan.scan": lambda text: _all(scan.scan(text)),
    "scoring.text.scan.unquoted": scan.unquoted,
    "scoring.text.signs.found_at": lambda text: _all(signs.found_at(*_BRACKETS, text)),
    "scoring.text.signs.replaced_at": lambda text: signs.replaced_at(
        *_BRACKETS, lambda found: found[1], text
    ),
    "scoring.text.sentences.names_sources": sentences.names_sources,
    "scoring.text.sentences.readable": sentences.readable,
    "scoring.text.sentences.tidy": lambda text: [
        sentences.tidy(one) for one in citation_marks.split(text, citation_marks.MAX_PIECE)
    ],
    "scoring.text.thoughts.parted": thoughts.parted,
    "scoring.text.markup.plain": markup.plain.__wrapped__,
    "scoring.text.notations.in_markdown": notations.in_markdown,
    "scoring.text.citation_marks.compatible": citation_marks.compatible,
    "scoring.text.citation_marks.cut": lambda text: citation_marks.cut(text, 3_000),
    "scoring.text.citation_marks.split": lambda text: _all(citation_marks.split(text, 3_000)),
    "scoring.deepresearch_bench.uncited.uncited_of": lambda text: uncited.uncited_of(text, _HANDED),
    "scoring.deepresearch_bench.published_fact.cited_in": partial(_read, published_fact.cited_in),
    "scoring.deepresearch_bench.published_fact.kept_in": lambda text: published_fact.kept_in(text, 9),
    "scoring.deepresearch_bench.published_fact.verdicts_in": partial(
        _read, lambda text: published_fact.verdicts_in(text, 9)
    ),
    "scoring.deepresearch_bench.published_fact.without_fragments": published_fact.without_fragments,
    "scoring.deepresearch_bench.published_fact.without_links": published_fact.without_links,
    "scoring.deepresearch_bench.published_criteria.listed_in": partial(_read, published_criteria.listed_in),
    "scoring.deepresearch_bench.published_race.json_in": partial(_read, published_race.json_in),
    "scoring.deepresearch_bench.published_race.marks_in": partial(_read, published_race.marks_in),
    "scoring.gold.rules.holds": lambda text: rules.holds(text, text[-1_000:]),
    "scoring.gold.rules.flaw": rules.flaw,
    "scoring.gold.rules.predicate": rules.predicate,
    "scoring.gold.rules.is_common": rules.is_common,
    "scoring.rubrics.rigorous.keyword_frequency": lambda text: rigorous.keyword_frequency("a", text),
    "scoring.rubrics.links.annotated": lambda text: links.annotated(text, _HANDED),
    "scoring.rubrics.links.traces": lambda text: drb2.traces(text, (), _BLOCKED),
    "scoring.rubrics.links.address_of": links.address_of,
    "scoring.rubrics.links.cited_urls": links.cited_urls,
    "scoring.text.citation_marks.label": citation_marks.label,
    "scoring.text.sentences.marked": lambda text: _all(
        sentences.marked(piece, _KNOWN).sentences()
        for piece in citation_marks.split(text, citation_marks.MAX_PIECE)
    ),
    "judges.chat.read_reply": lambda text: chat.read_reply(_QUESTION, text, finish_reason="stop"),
    "judges.chat.without_mark": lambda text: chat.without_mark(_QUESTION, text, b"secret"),
    "judges.chat.without_reasoning": chat.without_reasoning,
    "judges.loops.loop_begins": loops.loop_begins,
    "judges.schema.decode": _decode,
    "judges.schema.object_in": _object_in,
    "fetchers.extract.decode": lambda text: extract.decode(text.encode("utf-8", "replace"), "text/html"),
    "fetchers.extract.extract": lambda text: _extract(text, "text/html"),
    "fetchers.extract.markup": _markup,
    "fetchers.extract.excess": lambda text: extract.excess(f"<p {text}") or extract.excess(text),
    "fetchers.separated.separator_of": separated.separator_of,
    "fetchers.urls.normalise_url": partial(_url, normalise_url),
    "fetchers.urls.page_key": partial(_url, page_key),
    "fetchers.urls.page_parts": partial(_url, page_parts),
    "fetchers.urls.printable": printable,
    "fetchers.urls.site_of": partial(_url, site_of),
    "fetchers.urls.split_url": partial(_url, split_url),
    "fetchers.urls.worker_of": partial(_url, lambda text: worker_of(text, 3)),
    "judges.lexical.figures": lexical.figures,
    "judges.lexical.has_content": lexical.has_content,
    "judges.lexical.has_known_words": lexical.has_known_words,
    "judges.lexical.names": lexical.names,
    "judges.lexical.passages": lambda text: lexical.passages(text).support(text[:1_000]),
    "judges.lexical.sentences": lambda text: _all(lexical.sentences(text)),
    "judges.lexical.terms": lexical.terms,
    "engine.rewards.flags.citation_stuffing": lambda text: flags.citation_stuffing(flags.Said(text), _LENGTH),
    "engine.rewards.flags.duplicate_citations": lambda text: flags.duplicate_citations(
        flags.Said(text), _LENGTH
    ),
    "engine.rewards.flags.flags_of": lambda text: flags.flags_of(flags.Said(text), _LENGTH, flags.FLAGS),
    "engine.rewards.flags.echo": lambda text: flags.echo(flags.Said(text), _LENGTH),
    "engine.rewards.flags.hidden": lambda text: flags.hidden(flags.Said(text), _LENGTH),
    "engine.rewards.flags.repetition": lambda text: flags.repetition(flags.Said(text), _LENGTH),
    "engine.rewards.flags.page_echo": lambda text: flags.page_echo(flags.Said(text, pages=(text,)), _LENGTH),
    "engine.rewards.flags.injection": lambda text: flags.injection(flags.Said(text), _LENGTH),
    "engine.rewards.flags.length": lambda text: flags.length(flags.Said(text), _LENGTH),
    "engine.rewards.report.last_turn": lambda text: report.last_turn(text, ReportRules()),
    "engine.rewards.report.unclosed": report.unclosed,
    "engine.rewards.templates.has_traces": templates.has_traces,
    "engine.rewards.templates.is_call": templates.is_call,
    "engine.rewards.templates.marks": lambda text: _all(templates.marks(text, ReportRules())),
    "scoring.text.seen.seen": seen.seen,
    "scoring.text.integrity.copied": lambda text: integrity.copied(text, text[::2]),
    "scoring.text.orders.orders_in": lambda text: _all(orders.orders_in(text)),
    "scoring.text.integrity.echoed": lambda text: integrity.echoed(text, (text[::2],)),
    "scoring.text.integrity.echoing": lambda text: integrity.echoing((text,), text),
    "scoring.text.integrity.hidden_chars": integrity.hidden_chars,
    "scoring.text.integrity.injections": integrity.injections,
    "scoring.text.integrity.repeated": integrity.repeated,
    "scoring.text.integrity.prose_words": integrity.prose_words,
    "scoring.text.looks.looks_of": lambda text: looks_of(text, (text[::2],), _HANDED),
    "scoring.text.integrity.signs_in": lambda text: integrity.signs_in(text, (text[::2],)),
    "scoring.text.integrity.words_of": integrity.words_of,
    "engine.viewer.data.marked_text.marked_text": lambda text: marked_text.marked_text(
        marked_text.source_of(text),
        [marked_text.Mark(n, n + 30, "none", "1", "") for n in range(0, len(text), 100)],
        1,
        True,
    ),
    "engine.viewer.data.marked_text.source_of": marked_text.source_of,
    "fetchers.urls.storable": urls.storable,
    "judges.chat.content_parts": lambda text: chat.content_parts(Context.of(report=""), text),
    "engine.viewer.data.passages.nearest": lambda text: passages.nearest(text, text[:1_000]),
    "engine.viewer.data.passages.said_at": lambda text: passages.said_at(text, [text[:1_000], text[-1_000:]]),
}

MODULES: tuple[ModuleType, ...] = (
    *(
        import_module(found.name)
        for found in pkgutil.iter_modules(text_package.__path__, "adjudge.scoring.text.")
    ),
    *(published_fact, published_criteria, published_race, published, published_replies, uncited),
    *(links, drb2, rigorous, citing, sandbox, published_facts, rules),
    *(
        lexical,
        chat,
        loops,
        schema,
        extract,
        separated,
        urls,
        flags,
        report,
        templates,
        passages,
        marked_text,
    ),
)
_UNTRUSTED = frozenset(["text", "raw", "body", "page", "url", "spoken", "content"])


def public_readers() -> set[str]:
    """The public functions of `MODULES` that take a text, a page's body or a URL, by their hints."""
    found = set()
    for module in MODULES:
        for name, function in inspect.getmembers(module, callable):
            own = getattr(function, "__module__", "") == module.__name__ and inspect.isfunction(
                inspect.unwrap(function)
            )
            if not own or name.startswith("_") or inspect.iscoroutinefunction(function):
                continue
            hints = get_type_hints(function)
            hints.pop("return", None)
            kinds = {name: getattr(kind, "__supertype__", kind) for name, kind in hints.items()}
            texts = (name in _UNTRUSTED and kind in (str, bytes, str | None) for name, kind in kinds.items())
            if any(texts) or flags.Said in kinds.values():
                found.add(f"{module.__name__.removeprefix('adjudge.')}.{name}")
    return found
