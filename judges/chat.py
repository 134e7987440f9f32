"""A question as the messages that a chat model reads, and the model's reply as a typed answer.

The order is one constant preamble, the context, then the instructions and the question, so that all questions about one
context share a token prefix. Untrusted text is enclosed in marks that its writer cannot know: they are derived from the
context's hash and a secret, are constant for one context, and are removed from the text itself.

A reply's finish reason is checked before its JSON, except that blanks after a whole object cut nothing off.
"""

import hashlib
import os
import re
from typing import TypeVar, cast

import msgspec

from adjudge.judges.judgment import JudgeReason, Reply, Usage, encodable, storable
from adjudge.judges.loops import LOOP, loop_begins
from adjudge.judges.marks import BEFORE, BEHIND, THOUGHT_TAGS, THOUGHTS
from adjudge.judges.published import MAX_SAID_CHARS, PublishedQuestion, Said, UnreadableReply
from adjudge.judges.question import Answer, Context, Media, Question
from adjudge.judges.schema import Schema, UnparseableReply, decode, shape
from adjudge.prompts import Prompt, PromptBook

A = TypeVar("A", bound=Answer)

Message = dict[str, str]
Part = dict[str, object]

_PREAMBLE = "preamble"


_AGAIN = {
    "en": "This reply cannot be read (FAULT). Answer again with one JSON object of the form above, and nothing else.",
    "zh": "这一回复无法读取（FAULT）。请按上述格式重新回答，只输出一个 JSON 对象。",
}
_SHOWN_AGAIN = 2_000  # characters of an unreadable reply


def secret_from_environment() -> bytes:
    """The deployment's fence secret, from ADJUDGE_FENCE_SECRET; one constant for all where it is unset."""
    return os.environ.get("ADJUDGE_FENCE_SECRET", "adjudge").encode()


def messages(question: Question[A], book: PromptBook, schema: Schema, secret: bytes) -> list[Message]:
    """System and user message of `question`: preamble; then context, instructions, fields, answer shape.

    A published question has its own messages. Lone surrogates, which no server takes, become U+FFFD.
    """
    if isinstance(question, PublishedQuestion):
        return question.messages()
    mark = _mark(question.context, secret)
    preamble: Prompt = book.get(_PREAMBLE, question.language)
    prompt: Prompt = book.get(question.prompt, question.language, question.folder)
    parts = [_fenced(section.name, section.text, mark) for section in question.context.sections]
    if question.context.media:
        names = [f"{number}: {media.name}" for number, media in enumerate(question.context.media, 1)]
        parts.insert(0, _fenced("media", "\n".join(names), mark))
    parts.append(prompt.fill(_fields(question, mark)))
    parts.append(f"JSON: {shape(schema)}")
    return [
        {"role": "system", "content": preamble.template},
        {"role": "user", "content": encodable("\n\n".join(parts))},
    ]


def sizes(question: Question[A], book: PromptBook) -> tuple[int, int]:
    """The sizes in bytes of the context of `question`, and about those of the rest of its prompt.

    A token takes about as many bytes in any language.
    """
    context = sum(_size(section.text) for section in question.context.sections)
    if isinstance(question, PublishedQuestion):
        return context, sum(_size(message["content"]) for message in question.messages()) - context
    template = book.get(question.prompt, question.language, question.folder).template
    return context, _size(template) + sum(map(_size, question.fields().values()))


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))


def _mark(context: Context, secret: bytes) -> str:
    return hashlib.blake2b(context.digest, key=secret[:64], digest_size=6).hexdigest()


def without_mark(question: Question[A], text: str | None, secret: bytes) -> str | None:
    """A reply's `text` without the mark that encloses the texts of its prompt, which is nobody else's to know."""
    return text and text.replace(_mark(question.context, secret), "*")


def asked_again(reply: Reply[A], language: str) -> list[Message]:
    """What follows the messages of a question whose `reply` cannot be read: the reply, and its fault."""
    said = _AGAIN.get(language, _AGAIN["en"]).replace("FAULT", reply.fault)
    return [
        {"role": "assistant", "content": encodable(reply.text[:_SHOWN_AGAIN])},
        {"role": "user", "content": encodable(said)},
    ]


def corrected(first: Reply[A], again: Reply[A]) -> Reply[A]:
    """The reply to a question whose `first` reply could not be read, and which was asked `again` with the fault named.

    Where that brings neither an answer nor a refusal, the first reply stands.
    """
    is_told = again.answer is not None or again.reason in ("judge_refused", "judge_unparseable")
    ending = f"{first.finish_reason}, asked again: {again.finish_reason or again.reason}"
    return msgspec.structs.replace(
        again if is_told else first, finish_reason=ending, usage=first.usage + again.usage
    )


def prompt_digests(question: Question[A], book: PromptBook) -> list[bytes]:
    """The digests of the prompts that `messages` takes from `book`: none for a published question."""
    if isinstance(question, PublishedQuestion):
        return []
    preamble = book.get(_PREAMBLE, question.language)
    return [preamble.digest, book.get(question.prompt, question.language, question.folder).digest]


def _fields(question: Question[A], mark: str) -> dict[str, str]:
    """The fields as they are shown: text fenced, numbers as they are."""
    return {
        name: text if isinstance(getattr(question, name), int | float) else _fenced(name, text, mark)
        for name, text in question.fields().items()
    }


def content_parts(context: Context, text: str) -> list[Part]:
    """A user message's `text` as the content parts of a chat request, after the context's media in their order.

    Pictures and sound as the OpenAI API takes them, films as vLLM does.
    """
    return [*map(_part, context.media), {"type": "text", "text": text}]


def _part(media: Media) -> Part:
    url = f"data:{media.type};base64,{media.data}"
    if media.kind == "audio":
        audio = {"data": media.data, "format": media.type.partition("/")[2]}
        return {"type": "input_audio", "input_audio": audio}
    if media.kind == "video":
        return {"type": "video_url", "video_url": {"url": url}}
    return {"type": "image_url", "image_url": {"url": url}}


def _fenced(name: str, text: str, mark: str) -> str:
    return f"<<{mark} {name}\n{text.replace(mark, '*')}\n{mark}>>"


MAX_REPLY_CHARS = 100_000
_ABORTED = frozenset({"abort", "error"})
_REFUSED = frozenset({"content_filter", "refusal"})
# The thoughts before an answer, which the templates of some models open already in the prompt.
_THOUGHT = rf"{BEFORE}(?:{'|'.join(THOUGHT_TAGS)}){BEHIND}"
_REASONING_END = re.compile(
    rf"</{_THOUGHT}>|\[/{_THOUGHT}\]|{'|'.join(re.escape(closing) for _, closing in THOUGHTS)}"
    r"|<\|channel\|>final(?: ?<\|constrain\|>\w{1,20})?<\|message\|>",
    re.IGNORECASE,
)
_REASONING_START = re.compile(
    rf"\s*(?:<{_THOUGHT}|\[{_THOUGHT}\]|{'|'.join(re.escape(opening) for opening, _ in THOUGHTS)}"
    r"|(?:<\|start\|>assistant)?<\|channel\|>)",
    re.IGNORECASE,
)
_FAULT_CHARS = 200
_MOST_NOTED = 5  # trimmed fields
_ROUND = 200  # characters of a loop that are kept
_NO_USAGE = Usage()


def read_reply(
    question: Question[A],
    text: str | None,
    finish_reason: str,
    usage: Usage = _NO_USAGE,
    seconds: float = 0.0,
    refusal: str | None = None,
    thought: str = "",
) -> Reply[A]:
    """The reply to `question`: an answer, or the reason there is none.

    `length` is answer_truncated, an abort by the server judge_unavailable, a content filter or a stated refusal
    judge_refused, and anything that does not fit the answer type judge_unparseable. Reasoning in front of the answer is
    dropped; `text` is empty if nothing follows it. The reply to a published question is its answer, cut off or not;
    judge_unparseable if it is the last attempt's and cannot be read. `seconds` is the request's own duration. A reply
    that was cut off in a loop has the finish reason LOOP, and is kept without its repetitions; so has one whose
    `thought`, which the server tells apart, is such a loop.
    """
    spoken = without_reasoning(text or "")
    kept = (refusal or spoken.strip())[:MAX_REPLY_CHARS]

    def unscored(reason: JudgeReason, said: str = kept) -> Reply[A]:
        return Reply(reason=reason, text=said, finish_reason=finish_reason, usage=usage, seconds=seconds)

    is_published = isinstance(question, PublishedQuestion)
    is_cut = finish_reason in ("length", LOOP) and not _is_whole(spoken)
    if is_cut and (begins := loop_begins(text or thought)) is not None:
        finish_reason = LOOP
        if not is_published:
            kept = without_reasoning((text or "")[: begins + _ROUND]).strip()
    if is_cut and not is_published:
        return unscored("answer_truncated", kept)
    if finish_reason in _ABORTED:
        return unscored("judge_unavailable")
    if finish_reason in _REFUSED or refusal:
        return unscored("judge_refused")
    if is_published:
        said = _said(question, storable(spoken))
        if said is None:
            return unscored("judge_unparseable", kept or "(an empty reply)")
        return Reply(answer=said, finish_reason=finish_reason, usage=usage, seconds=seconds)
    if len(spoken.strip()) > MAX_REPLY_CHARS:
        return unscored("judge_unparseable")
    try:
        found = decode(question, spoken)
    except UnparseableReply as error:
        fault = " ".join(str(error).split())[:_FAULT_CHARS]
        return Reply(
            reason="judge_unparseable",
            text=kept or "(an empty reply)",
            finish_reason=f"{finish_reason or 'stop'}: {fault}",
            usage=usage,
            seconds=seconds,
            fault=fault,
        )
    ending = ", ".join([finish_reason, *(f"{field} trimmed" for field in found.trimmed[:_MOST_NOTED])])
    return Reply(answer=found.answer, text=kept, finish_reason=ending, usage=usage, seconds=seconds)


def _said(question: Question[A], spoken: str) -> A | None:
    """The reply to a published question itself; None if it is too long, or ends the attempts and cannot be read."""
    if len(spoken) > MAX_SAID_CHARS:
        return None
    if isinstance(question, PublishedQuestion) and question.is_last:
        try:
            question.read(spoken)
        except UnreadableReply:
            return None
    return cast(A, Said(text=spoken))


def continued(cut: Reply[A], again: Reply[A], budgets: tuple[int, int]) -> Reply[A]:
    """The reply to a question that was `cut` off and asked `again` with more tokens: `budgets` are both `max_tokens`.

    If the server takes no more tokens, the first reply is kept.
    """
    refused = again.reason in ("context_overflow", "judge_unsupported")
    ends = (f"length ({budgets[0]})", f"{'refused' if refused else again.finish_reason} ({budgets[1]})")
    return msgspec.structs.replace(
        cut if refused else again, finish_reason=", ".join(ends), usage=cut.usage + again.usage
    )


def without_reasoning(text: str) -> str:
    """`text` after its reasoning, which the last closing tag ends; reasoning that does not end has no answer.

    Templates often open the block in the prompt, so a reply may begin inside it. A reply that is JSON as a whole has
    none: a tag in it stands inside a string.
    """
    start = 0
    for end in _REASONING_END.finditer(text):
        start = end.end()
    if start and not _is_json(text):
        text = text[start:]
    return "" if _REASONING_START.match(text) else text


def _is_whole(text: str) -> bool:
    """Whether `text` is one JSON object: what was cut off behind it are blanks, or nothing."""
    return text.lstrip().startswith("{") and _is_json(text)


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return True
