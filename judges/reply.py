"""A server's reply as a typed answer: the finish reason is looked at before the JSON."""

import re
from typing import TypeVar

from adjudge.judges.judgment import JudgeReason, Reply, Usage
from adjudge.judges.question import Answer, Question
from adjudge.judges.schema import UnparseableReply, decode

__all__ = ["read_reply"]

A = TypeVar("A", bound=Answer)

MAX_REPLY_CHARS = 100_000
_ABORTED = frozenset({"abort", "error"})
_REFUSED = frozenset({"content_filter", "refusal"})
_REASONING_ENDS = re.compile(r"</think(?:ing)?>")
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
    dropped. `seconds` is the request's own duration.
    """
    spoken = _without_reasoning(text or "")
    kept = (refusal or spoken)[:MAX_REPLY_CHARS]

    def unscored(reason: JudgeReason) -> Reply[A]:
        return Reply(reason=reason, text=kept, finish_reason=finish_reason, usage=usage, seconds=seconds)

    if finish_reason == "length":
        return unscored("answer_truncated")
    if finish_reason in _ABORTED:
        return unscored("judge_unavailable")
    if finish_reason in _REFUSED or refusal:
        return unscored("judge_refused")
    if len(spoken) > MAX_REPLY_CHARS:
        return unscored("judge_unparseable")
    try:
        answer = decode(question, spoken)
    except UnparseableReply:
        return unscored("judge_unparseable")
    return Reply(answer=answer, text=kept, finish_reason=finish_reason, usage=usage, seconds=seconds)


def _without_reasoning(text: str) -> str:
    """`text` after its reasoning; a reply whose reasoning does not end has no answer.

    Templates often open the block in the prompt, so a reply may begin inside it.
    """
    begins = text.lstrip()[:10]
    if begins.startswith("{"):
        return text
    end = _REASONING_ENDS.search(text)
    if end is not None:
        return text[end.end() :]
    return "" if begins.startswith("<think") else text
