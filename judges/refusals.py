"""What a server means that refuses a request: one question's failure, or one that every question would meet."""

import re
from typing import NamedTuple

from adjudge.judges.errors import Trouble
from adjudge.judges.judgment import JudgeReason
from adjudge.judges.server import Received, Server

__all__ = ["Fatal", "fatal", "is_about_format", "reason_of", "refused_parameter"]

_CONTEXT = re.compile(
    r"context.?(length|window|size)|maximum (input|sequence|model) length|(input|prompt) is too long"
    r"|too many tokens|max_tokens must be at least|inputs.{1,3}tokens.{1,40}must be"
    r"|max_(completion_)?tokens. ?is too large|supports at most .{1,20}tokens",
    re.IGNORECASE,
)
_FORMAT = re.compile(
    r"response.?format|json.?schema|structured.?output|guided.?(json|decoding)|grammar", re.IGNORECASE
)
_FILTERED = re.compile(r"content.?(filter|policy|management policy)", re.IGNORECASE)
_UNKNOWN_MODEL = re.compile(r"model_not_found|invalid model|model.{0,80}(not found|not exist)", re.IGNORECASE)
_UNSUPPORTED = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|not (permitted|allowed)|extra|deprecated|instead|only the default"
    r"|must be|between",
    re.IGNORECASE,
)
_PATH = "check that the URL is the part before /chat/completions, mostly ending in /v1"


class Fatal(NamedTuple):
    """Why no question can be answered, and what to do; KEY stands for the environment variable of the key."""

    trouble: Trouble
    fix: str

    def line(self, server: Server, model: str, received: Received) -> str:
        """One line: the server, its problem and what to do."""
        said = " ".join(received.said.split())[:300]
        fix = self.fix.replace("KEY", server.key_name)
        return f"{server.where}, model {model}: status {received.status} ({said}); {fix}"


_FATAL = {
    401: Fatal("unusable", "set the environment variable KEY to a key that it accepts"),
    402: Fatal("unusable", "add credit to its account"),
    403: Fatal("unusable", "the key in the environment variable KEY may not use this model"),
    405: Fatal("unusable", _PATH),
}
_NO_MODEL = Fatal("wrong_model", "set judge: model to a model that it serves")
_NOT_FOUND = Fatal("unusable", f"check the model's name, and {_PATH}")
_NO_API = Fatal("unusable", "check that the URL is that of an OpenAI-compatible API")
_TEMPERATURE = Fatal(
    "unusable", "add the line omit: [temperature] to judge:, or set judge: temperature to one that it takes"
)
_SEED = Fatal("unusable", "add the line omit: [seed] to judge:")
_OTHER_LIMIT = re.compile(r"max_(?:completion|output)_tokens", re.IGNORECASE)
_LIMIT = 32_768  # tokens, for any answer and the thinking before it


def fatal(status: int, said: str) -> Fatal | None:
    """Why a refusal with `status` and the message `said` would meet every question, or None."""
    if status == 404:
        return _NO_MODEL if "model" in said.lower() else _NOT_FOUND
    if status in _FATAL:
        return _FATAL[status]
    return _NO_API if 300 <= status < 400 else None


def refused_parameter(status: int, said: str) -> Fatal | None:
    """What of every request a server does not take (its model, `max_tokens`, temperature or seed), or None.

    A message may repeat a part of the prompt: believe it only of a server that has not answered yet.
    """
    if status not in (400, 422) or _CONTEXT.search(said):
        return None
    if _UNKNOWN_MODEL.search(said):
        return _NO_MODEL
    if not _UNSUPPORTED.search(said):
        return None
    lowered = said.lower()
    if "max_tokens" in lowered:
        return _without_max_tokens(lowered)
    if "temperature" in lowered:
        return _TEMPERATURE
    return _SEED if re.search(r"\bseed\b", lowered) else None


def _without_max_tokens(said: str) -> Fatal:
    """What to add to the configuration, with the name that the server has for the limit."""
    found = _OTHER_LIMIT.search(said)
    name = found[0] if found else "max_completion_tokens"
    fix = f"add two lines to judge: `omit: [max_tokens]` and `request: {{{name}: {_LIMIT}}}`"
    return Fatal("refuses_max_tokens", fix)


def is_about_format(status: int, said: str) -> bool:
    """Whether the server refuses to constrain its reply."""
    return status in (400, 422) and bool(_FORMAT.search(said)) and not _CONTEXT.search(said)


def reason_of(status: int, said: str) -> JudgeReason:
    """Why one question is unscored that the server refused for good."""
    if status == 413 or _CONTEXT.search(said):
        return "context_overflow"
    return "judge_refused" if _FILTERED.search(said) else "judge_unsupported"
