"""A server's reply as a typed answer: the finish reason is looked at before the JSON."""

from typing import TypeVar, cast

import msgspec

from adjudge.judges.judgment import JudgeReason, Reply, Usage
from adjudge.judges.published import MAX_SAID_CHARS, PublishedQuestion, Said, UnreadableReply
from adjudge.judges.question import Answer, Question
from adjudge.judges.schema import UnparseableReply, decode
from adjudge.judges.text import storable

__all__ = ["continued", "read_reply", "without_reasoning"]

A = TypeVar("A", bound=Answer)

MAX_REPLY_CHARS = 100_000
_ABORTED = frozenset({"abort", "error"})
_REFUSED = frozenset({"content_filter", "refusal"})
_REASONING_ENDS = ("</think>", "</thinking>")
_NO_USAGE = Usage()


def read_reply(
    question: Question[A],
    text: str | None,
    finish_reason: str,
    usage: Usage = _NO_USAGE,
    seconds: float = 0.0,
    refusal: str | None = None,
) -> Reply[A]:
    """The reply to `question`: an answer, or the reason why there is none.

    `length` is answer_truncated, an abort by the server judge_unavailable, a content filter or a stated refusal
    judge_refused, and anything that does not fit the answer type judge_unparseable. Reasoning in front of the answer is
    dropped; `text` is empty if nothing follows it. The reply to a published question is its answer, cut off or not;
    judge_unparseable if it is the last attempt's and cannot be read. `seconds` is the request's own duration.
    """
    spoken = without_reasoning(text or "")
    kept = (refusal or spoken)[:MAX_REPLY_CHARS]

    def unscored(reason: JudgeReason, said: str = kept) -> Reply[A]:
        return Reply(reason=reason, text=said, finish_reason=finish_reason, usage=usage, seconds=seconds)

    is_published = isinstance(question, PublishedQuestion)
    if finish_reason == "length" and not is_published:
        return unscored("answer_truncated")
    if finish_reason in _ABORTED:
        return unscored("judge_unavailable")
    if finish_reason in _REFUSED or refusal:
        return unscored("judge_refused")
    if is_published:
        said = _said(question, storable(spoken))
        if said is None:
            return unscored("judge_unparseable", kept or "(an empty reply)")
        return Reply(answer=said, finish_reason=finish_reason, usage=usage, seconds=seconds)
    if len(spoken) > MAX_REPLY_CHARS:
        return unscored("judge_unparseable")
    try:
        answer = decode(question, spoken)
    except UnparseableReply:
        return unscored("judge_unparseable", kept or "(an empty reply)")
    return Reply(answer=answer, text=kept, finish_reason=finish_reason, usage=usage, seconds=seconds)


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

    Where the server takes no more tokens, the first reply stands.
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
    ends = [place + len(tag) for tag in _REASONING_ENDS if (place := text.rfind(tag)) >= 0]
    if ends and not _is_json(text):
        text = text[max(ends) :]
    return "" if text.lstrip().startswith("<think") else text


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return True
