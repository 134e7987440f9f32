"""The answer to a question: a judgment, scored or unscored with a reason, with the same fields either way.

Every string from outside (replies, errors) is cleaned here so that it can be stored and shown. The judge options that a
configuration may set have their names and defaults here, without importing a client or an engine. A probe tries a judge
before a run relies on it: the smallest question, and what its reply shows about the judge.
"""

import re
from collections.abc import Iterable
from html import escape
from typing import Annotated, Generic, Literal, Protocol, TypeVar, runtime_checkable
from urllib.parse import urlsplit

import msgspec

from adjudge.judges.errors import Trouble
from adjudge.judges.question import Answer, Context, Question

__all__ = [
    "KEY_VARIABLE",
    "MOST_TOKENS",
    "PROBE_SECONDS",
    "THINKING_TOKENS",
    "Asked",
    "Combination",
    "Format",
    "FromEnvironment",
    "Judge",
    "JudgeIdentity",
    "JudgeReason",
    "Judgment",
    "Manner",
    "Omitted",
    "Probe",
    "Probed",
    "Profile",
    "Ready",
    "Redaction",
    "Reply",
    "Scoring",
    "Status",
    "Usage",
    "Verdict",
    "encodable",
    "probe",
    "shown_url",
    "storable",
]

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_QUERY = re.compile("[?#]")
_SHORTEST_SECRET = 8
_SPELLED = 8  # characters of a character, at most: three backslashes and u0041


def encodable(text: str) -> str:
    """`text` with U+FFFD for lone surrogates, which UTF-8 cannot hold."""
    if text.isascii():
        return text
    try:
        text.encode()  # a tenth of the time that the pattern takes
    except UnicodeEncodeError:
        return _LONE_SURROGATE.sub("\ufffd", text)
    return text


def storable(text: str) -> str:
    """`text` with U+FFFD for lone surrogates and for NUL, at which some readers of tables end a text."""
    return encodable(text).replace("\x00", "\ufffd")


def shown_url(url: str) -> str:
    """`url`, valid or not, without user, password, query and fragment, fit for messages."""
    scheme, slashes, rest = url.partition("://") if "://" in url else ("", "", url)
    address, *after = _QUERY.split(rest, maxsplit=1)
    if "@" in "".join(after):  # a query, or a password with a question mark
        address = "***"
    return storable(f"{scheme}{slashes}{address.rpartition('@')[2]}")


def is_server_address(url: str) -> bool:
    """Whether `url` names a host by HTTP, and a port that there can be."""
    try:
        found = urlsplit(url)
        return found.scheme in ("http", "https") and bool(found.hostname) and found.port != 0
    except ValueError:
        return False


_PIECE = re.compile(r"[A-Za-z0-9]{6,}")
_SWITCH = re.compile(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")


def looks_random(secret: str) -> bool:
    """Whether `secret` is of eight characters and more, and has letters and digits mixed as no word or number has them.

    `ollama`, `snapshot`, `llama3-8b` and `20261127` have not, nor has a pass phrase of words. Keys like OpenAI's count.
    """
    if secret.startswith("sk-") and len(secret) > 11:
        return True
    pieces = _PIECE.findall(secret) if len(secret) >= _SHORTEST_SECRET else []
    return any(len(_SWITCH.findall(piece)) > 1 for piece in pieces)


class FromEnvironment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value that stands in the environment, in the variable `env`."""

    env: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
    """The variable's name."""


class Redaction:
    """Removes an API key, and URLs' queries, from text.

    From replies, which are data, only what `looks_random`. From errors also the rest, a word (`EMPTY`) where it is a
    whole one.
    """

    def __init__(self, key: str, queried: Iterable[str] = ()) -> None:
        # The longest first, so that one that begins another leaves nothing of it.
        secrets = sorted({key, *queried} - {""}, key=len, reverse=True)
        self._random = list(filter(looks_random, secrets))
        named = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET or secret == key]
        self._longest = max(map(len, named), default=0) * _SPELLED
        spelled = (
            rf"(?<![\w-]){_spellings(secret)}(?![\w-])"
            if secret.isalnum() and secret not in self._random
            else _spellings(secret)
            for secret in named
        )
        self._spelled = re.compile("|".join(spelled) or "(?!)", re.IGNORECASE)

    def __call__(self, text: str) -> str:
        """An error's `text`, storable, with *** for every secret, escaped or not."""
        return storable(self._spelled.sub("***", text))

    def head(self, text: str, size: int) -> str:
        """About the first `size` characters of an error's `text`, redacted; the rest is not looked at."""
        begins = text[: size + self._longest]
        redacted = self(begins)
        if len(text) > len(begins):  # what it ends with may be a part of a secret
            redacted = redacted[: len(redacted) - self._longest]
        return redacted[:size]

    def body(self, content: bytes) -> bytes:
        """The bytes of a reply with *** for every secret."""
        for secret in self._random:
            content = content.replace(secret.encode(), b"***")
        return content


def _spellings(secret: str) -> str:
    """A pattern of `secret` as it is, behind backslashes, and in the escapes of JSON, of URLs and of HTML."""
    return "".join(
        rf"(?:\\{{0,3}}{re.escape(char)}|\\{{1,3}}u{ord(char):04x}|%{ord(char):02x}"
        rf"|&#0{{0,3}}{ord(char)};|&#x0{{0,3}}{ord(char):x};|{re.escape(escape(char))})"
        for char in secret
    )


KEY_VARIABLE = "OPENAI_API_KEY"
THINKING_TOKENS = 16_384

Omitted = Literal["max_tokens", "temperature", "seed", "response_format"]
"""Parameters that a request may leave out."""
Format = Literal["json_schema", "structured_outputs", "json_object_schema", "json_object", "words"]
"""How a server is asked for JSON, from the strictest on: by the schema in OpenAI's form, in vLLM's own (`guided_json`
before), or in llama.cpp's; for any JSON object; or by the words of the prompt alone."""
Combination = Literal["mean", "median", "majority"]
"""How a panel's answers become one."""
Scoring = Literal["sampled", "expected"]
"""Whether an answer is taken as written, or as the mean over the probabilities of all labels."""
Profile = Literal["exact", "fast"]
"""Whether a judge saves tokens where that may change an answer; adjudge.judges.profile says how."""


Status = Literal["scored", "unscored"]

JudgeReason = Literal[
    "judge_unavailable",  # no connection, 5xx or 429 after the retries
    "judge_timeout",  # sent, and no answer in time
    "judge_unparseable",  # the reply does not fit the answer type
    "judge_refused",  # the judge declined to answer
    "judge_unsupported",  # this judge cannot answer this type of question
    "media_unsupported",  # the context holds media that this judge does not take
    "deadline",  # the caller's deadline passed first
    "worker_died",  # the question killed a worker alone, twice
    "context_overflow",  # context and answer do not fit into the judge's window
    "answer_truncated",  # the reply reached its token limit, with more tokens too
]

A = TypeVar("A", bound=Answer)


MOST_TOKENS = 2**31 - 1


class Usage(msgspec.Struct, frozen=True):
    """Tokens, as the server counted them: prompt (cached included), cached, and generated; at most 2**31 - 1 each."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage.total((self, other))

    @classmethod
    def total(cls, several: Iterable["Usage"]) -> "Usage":
        """The sum of `several`."""
        prompt = cached = completion = 0
        for one in several:
            prompt += one.prompt_tokens
            cached += one.cached_tokens
            completion += one.completion_tokens
        return cls(min(MOST_TOKENS, prompt), min(MOST_TOKENS, cached), min(MOST_TOKENS, completion))


class Reply(msgspec.Struct, Generic[A], frozen=True, kw_only=True):
    """A judge's answer to one question: `answer`, or None and a reason.

    `text` is the raw reply, at most 100,000 characters, or what was said in its place; `finish_reason` is the server's
    word, and names both `max_tokens` sent if the question was asked again with more. Both are made storable here.
    `fault` says what in an unreadable text is wrong, by its field; `finish_reason` repeats it.
    `seconds` runs from sending to the last byte, without queueing. A question `is_alone` that failed each time while
    the judge answered others: waiting for the judge does not help it. `served` and `system_fingerprint` are the model
    and the system that answered, by the server's own word, and `constrained` says whether a schema did bind the reply.
    """

    answer: A | None = None
    reason: JudgeReason | None = None
    text: str = ""
    finish_reason: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0
    is_alone: bool = False
    fault: str = ""
    served: str = ""
    system_fingerprint: str = ""
    constrained: bool | None = None

    def __post_init__(self) -> None:
        for field in ("text", "finish_reason", "served", "system_fingerprint"):
            text = getattr(self, field)
            if (kept := storable(text)) is not text:
                msgspec.structs.force_setattr(self, field, kept)


class Judgment(msgspec.Struct, Generic[A], frozen=True, kw_only=True):
    """A reply with its identity; a row of the store.

    `key` is the blake2b-128 of everything that decides the answer (judge, sampling, prompts, schema, context, the
    question's fields, repeat), `group` that of the context; 16 bytes each. `written_at` is microseconds since the
    epoch, UTC. `served`, `system_fingerprint` and `constrained` are those of the reply.
    """

    key: bytes
    group: bytes
    question: str
    answer: A | None
    status: Status
    reason: JudgeReason | None
    text: str
    finish_reason: str
    usage: Usage
    seconds: float
    judge: str
    engine: str
    written_at: int
    served: str = ""
    system_fingerprint: str = ""
    constrained: bool | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """How a question is asked: its key (the seed derives from it), repeat and priority (lower first)."""

    key: bytes
    repeat: int = 0
    priority: int = 0

    @property
    def seed(self) -> int:
        """A 31-bit sampling seed derived from the key."""
        return int.from_bytes(self.key[:4], "big") >> 1


class JudgeIdentity(msgspec.Struct, frozen=True):
    """The judge that answers, the same for every replica and wrapper of it.

    `name` is for people; `fingerprint` and `sampling` are part of every key. `analysis` says whether the judge is asked
    to reason before its verdict. `profile` is part of `sampling` too, where it is not exact.
    """

    name: str
    fingerprint: str
    sampling: str
    analysis: bool = True
    profile: Profile = "exact"


class Judge(Protocol):
    """Answers questions as `identity`."""

    identity: JudgeIdentity

    async def answer(self, question: Question[A], asked: Asked) -> Reply[A]:
        """Answer one question. Never raises for one question's failure; engine-fatal errors propagate."""
        ...

    async def close(self) -> None:
        """Release connections and processes."""
        ...


PROBE_SECONDS = 60.0


class Manner(msgspec.Struct, frozen=True):
    """How the requests to a server are written: in which `format`, and whether with a message of the `system`."""

    format: Format = "json_schema"
    system: bool = True

    @property
    def said(self) -> str:
        """In words."""
        return self.format if self.system else f"{self.format}, no system message"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of probing one server or engine: `trouble`, or None if it can be used.

    `where` names it (without a key or query), `line` says in one line what is wrong with it and what to do. `window` is
    the most tokens that prompt and answer may take together, None where it does not say; `seconds` is the time of the
    reply. `manner` is how it can be asked, None where there is no choice; `served` is what it calls the model,
    `system_fingerprint` its word for its system. `window_by` says who told the window, `most_tokens` is the most that
    an answer may have, if it says so, and `tokens_per_s` is the speed of the reply.
    """

    where: str
    trouble: Trouble | None = None
    line: str = ""
    window: int | None = None
    seconds: float = 0.0
    manner: Manner | None = None
    served: str = ""
    system_fingerprint: str = ""
    window_by: Literal["", "max_context", "its list of models"] = ""
    most_tokens: int | None = None
    tokens_per_s: float | None = None

    @property
    def is_good(self) -> bool:
        """Whether questions may be sent to it."""
        return self.trouble is None


@runtime_checkable
class Probed(Protocol):
    """A judge that can be tried. What wraps or combines judges hands this on to each of them."""

    async def probe(self, timeout_s: float = PROBE_SECONDS) -> tuple[Verdict, ...]:
        """Ask each server or engine behind this judge the probe, constrained and with the settings of the run.

        One verdict for each, in their order. Never raises for a judge that cannot be used.
        """
        ...


async def probe(judge: Judge, timeout_s: float = PROBE_SECONDS) -> tuple[Verdict, ...]:
    """The verdicts on every server or engine behind `judge`; empty for a judge that needs neither."""
    return await judge.probe(timeout_s) if isinstance(judge, Probed) else ()


class Ready(Answer, frozen=True, kw_only=True):
    """Yes or no."""

    ready: Literal["yes", "no"]


class Probe(Question[Ready], frozen=True, kw_only=True):
    """Asks a judge whether it can read the context."""

    prompt = "probe"
    answer = Ready

    @classmethod
    def make(cls) -> "Probe":
        """The only probe."""
        return cls(context=Context.of(note="This is a test of the connection."))

    def lexical(self) -> Ready:
        """Always ready."""
        return Ready(ready="yes")
