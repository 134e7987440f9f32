"""A report as a model's server answered it, and the citations that it hands over apart from the text.

Known by their structure: answers of OpenAI's Responses and Chat Completions, Anthropic's Messages and Gemini's
`generateContent` (its grounding metadata among them), whole or as a field of a row; conversations, whose last words of
the model are the report; and lists of sources beside a text,
as URLs or as objects (`url_citation` annotations, Perplexity's `citations` and `search_results`, NotebookLM's
`references`).
"""

import itertools
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import msgspec

from adjudge.engine.formats.messages import Message, last_reply
from adjudge.engine.formats.records import Raws

__all__ = ["MAX_HANDED", "hand_over", "index_of_storm", "may_hand_over"]

MAX_HANDED = 5_000
"""Citations that are read of a report."""
_LISTS = ("annotations", "citations", "references", "search_results", "sources")
_URL = ("url", "uri", "link", "source_url")
_TITLE = ("title", "name", "source_title")
_MARKER = ("marker", "citation_number", "number", "label", "ref", "id", "index")
_END = ("position", "end_index", "endIndex")
_NESTED = ("url_citation", "web", "source")
_SIGN = re.compile(f'"(?:{"|".join((*_LISTS, "output", "choices", "candidates", "content"))})"'.encode())
_OWN = {"url", "title", "marker", "position"}  # as a file of reports is documented
_MARKER_CHARS = 40

_Found = dict[str, Any]


def may_hand_over(raw: bytes) -> bool:
    """Whether a row may hold what `hand_over` reads."""
    return _SIGN.search(raw) is not None


def hand_over(row: Raws, text: str, citations: str, others: tuple[str, ...]) -> None:
    """Put the text and citations that `row` holds in a server's forms under the names `text` and `citations`.

    `others` are the names that the text may have. What has none of these forms stays as it is. Raises MsgspecError for
    JSON that is none.
    """
    for name in ("", text, *others):
        whole = None if name and not _is_nested(row.get(name)) else _answer(row, name)
        if whole is not None:
            said, handed = whole
            for key in (name, *(_ANSWERS if not name else ())):
                row.pop(key, None)
            row[text] = _raw(said)
            if handed:
                row[citations] = _raw(handed[:MAX_HANDED])
                return
            break
    if not any(_is_text(row.get(name)) for name in (text, *others)):
        _take_conversation(row, text)
    said = next((msgspec.json.decode(row[name]) for name in (text, *others) if _is_text(row.get(name))), "")
    for name in (citations, *_LISTS):
        if (raw := row.get(name)) is None or bytes(raw).lstrip()[:1] != b"[":
            continue
        entries = msgspec.json.decode(raw)
        if entries and name == citations and all(map(_is_own, entries)):
            return
        if handed := list(_listed(entries, said)):
            row[citations] = _raw(handed)
            return
    if citations in row and bytes(row[citations]).lstrip()[:1] == b"[":
        del row[citations]  # a list without an address


_CONVERSATIONS = ("messages", "conversation", "conversations")


def _take_conversation(row: Raws, text: str) -> None:
    """Put what the model said last in the conversation of a row that has no text under the name `text`."""
    name = next((name for name in _CONVERSATIONS if bytes(row.get(name, b"")).lstrip()[:1] == b"["), "")
    found = _answer(row, name) if name else None
    if found is not None:
        row[text] = _raw(found[0])
        del row[name]


_ANSWERS = ("output", "choices", "candidates", "content")


def _answer(row: Raws, name: str) -> tuple[str, list[_Found]] | None:
    """The text and citations of the answer in `row` under `name`, or that `row` is itself."""
    holder: Any = (
        msgspec.json.decode(row[name])
        if name
        else {key: msgspec.json.decode(row[key]) for key in _ANSWERS if _is_nested(row.get(key))}
    )
    if isinstance(holder, list):
        holder = {"output": holder}
    if not isinstance(holder, dict):
        return None
    for key, parts in (("output", _of_output), ("choices", _of_choices), ("candidates", _of_candidates)):
        if isinstance(holder.get(key), list) and (found := _joined(parts(holder[key]))):
            return found
    content = holder.get("content")
    return _joined(_spoken({"content": content})) if isinstance(content, list) else None


def _joined(parts: Iterator[tuple[str, list[_Found]]]) -> tuple[str, list[_Found]] | None:
    """The texts of `parts` as one, and their citations with places in it; None without a text."""
    text, handed = "", list[_Found]()
    for part, cited in parts:
        handed += [
            one | {"position": one["position"] + len(text)} if "position" in one else one for one in cited
        ]
        text += part
    return (text, handed) if text else None


def _of_output(items: list[Any]) -> Iterator[tuple[str, list[_Found]]]:
    """OpenAI's Responses, or a conversation: the model's last words, which are the report."""
    spoken = [
        (one, message) for one in items if (message := _message(one)) is not None and message.text.strip()
    ]
    last = last_reply([message for _, message in spoken])
    if last is not None:
        yield from _spoken(spoken[last][0])


def _of_choices(choices: list[Any]) -> Iterator[tuple[str, list[_Found]]]:
    """OpenAI's Chat Completions."""
    message = choices[0].get("message") if choices and isinstance(choices[0], dict) else None
    yield from _spoken(message)


def _of_candidates(candidates: list[Any]) -> Iterator[tuple[str, list[_Found]]]:
    """Gemini's `generateContent`."""
    first = candidates[0] if candidates and isinstance(candidates[0], dict) else {}
    message = _message(first.get("content"))
    if message is not None and message.text:
        yield message.text, list(_grounded(first.get("groundingMetadata"), message.text))


def _message(one: Any) -> Message | None:
    """A message of a conversation; the model's, if it does not say whose. None for anything else."""
    if not isinstance(one, dict):
        return None
    nameless = not (one.get("role") or one.get("from")) and one.get("type") in (None, "message")
    try:
        return msgspec.convert(one | {"role": "assistant"} if nameless else one, Message)
    except msgspec.ValidationError:
        return None


def _spoken(one: Any) -> Iterator[tuple[str, list[_Found]]]:
    """What a message says to its user, in pieces with their own citations.

    Those of OpenAI's have places; Anthropic's are of the whole piece.
    """
    message = _message(one)
    if message is None:
        return
    given = one.get("content") or one.get("parts") or one.get("value") or ()
    blocks: Any = [given] if isinstance(given, str) else given
    for place in message.said:
        block: dict[str, Any] = {"text": blocks[place]} if isinstance(blocks[place], str) else blocks[place]
        text = block["text"] or ""
        cited = block.get("citations")
        whole = map(_source, cited) if isinstance(cited, list) else ()
        handed = [source | {"position": len(text.rstrip())} for source in whole if source]
        listed = block.get("annotations", one.get("annotations") if len(blocks) == 1 else None)
        yield text, handed or list(_listed(listed, text))


def _grounded(metadata: Any, text: str) -> Iterator[_Found]:
    """Gemini's supports, which end where so many bytes of the text end."""
    if not isinstance(metadata, dict):
        return
    chunks = metadata.get("groundingChunks")
    sources = [_source(one) for one in chunks] if isinstance(chunks, list) else []
    ends = list(itertools.accumulate(len(sign.encode("utf-8", "replace")) for sign in text))
    supports = metadata.get("groundingSupports")
    for support in supports if isinstance(supports, list) else ():
        segment = support.get("segment") if isinstance(support, dict) else None
        places = support.get("groundingChunkIndices") if isinstance(support, dict) else None
        end = segment.get("endIndex") if isinstance(segment, dict) else None
        if not isinstance(end, int) or not isinstance(places, list):
            continue
        position = bisect_right(ends, end)
        for place in places:
            if isinstance(place, int) and 0 <= place < len(sources) and sources[place]:
                yield sources[place] | {"position": position}


def _listed(entries: Any, text: str) -> Iterator[_Found]:
    """A list of sources beside `text`: each with its place in it, or with the label of its marks, or its number."""
    if not isinstance(entries, list):
        return
    label = next((name for name in _MARKER if any(_labels(one, name, text) for one in entries[:_TRIED])), "")
    for place, one in enumerate(entries[:MAX_HANDED], 1):
        source = _source(one)
        if source:
            marker = _label(one, label) or str(place)
            yield source if "position" in source else source | {"marker": marker}


_TRIED = 20  # entries whose labels are looked for in the text


def _labels(one: Any, name: str, text: str) -> bool:
    label = _label(one, name)
    return bool(label) and (name == "marker" or f"[{label}]" in text)


def _label(one: Any, name: str) -> str:
    value = one.get(name) if isinstance(one, dict) else None
    return str(value) if isinstance(value, str | int) and 0 < len(str(value)) <= _MARKER_CHARS else ""


def _source(one: Any) -> _Found:
    """The URL and title of an entry, and where in the text it is cited, if it says so; nothing without a URL."""
    if isinstance(one, str):
        return {"url": one} if _is_address(one) else {}
    if not isinstance(one, dict):
        return {}
    for name in _NESTED:
        if isinstance(inner := one.get(name), dict):
            one = one | inner
    url = next((one[name] for name in _URL if _is_address(one.get(name))), "")
    if not url:
        return {}
    title = next((one[name] for name in _TITLE if isinstance(one.get(name), str)), "")
    end = next((one[name] for name in _END if type(one.get(name)) is int and one[name] > 0), None)
    return {"url": url, "title": title} | ({} if end is None else {"position": end})


def _is_own(entry: Any) -> bool:
    return isinstance(entry, dict) and "url" in entry and entry.keys() <= _OWN


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and value[:8].lower().startswith(("http://", "https://"))


def _is_nested(raw: msgspec.Raw | None) -> bool:
    return raw is not None and bytes(raw).lstrip()[:1] in (b"[", b"{")


def _is_text(raw: msgspec.Raw | None) -> bool:
    return raw is not None and bytes(raw).lstrip()[:1] == b'"'


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


class _Index(msgspec.Struct):
    """STORM's `url_to_info.json`: the number that marks give each page, and what is known of it."""

    url_to_unified_index: dict[str, int]
    url_to_info: dict[str, dict[str, Any]] = {}


def index_of_storm(body: bytes) -> list[_Found]:
    """The citations that STORM keeps beside its article. Raises MsgspecError."""
    index = msgspec.json.decode(body, type=_Index)
    numbered = sorted(index.url_to_unified_index.items(), key=lambda one: one[1])[:MAX_HANDED]
    titles = {url: index.url_to_info.get(url, {}).get("title") for url, _ in numbered}
    return [
        {"url": url, "title": title if isinstance(title := titles[url], str) else "", "marker": str(number)}
        for url, number in numbered
    ]
