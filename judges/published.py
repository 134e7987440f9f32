"""A question in a benchmark's own words: its messages are the benchmark's, its answer is free text.

The prompts come from the user's checkout (`adjudge.judges.checkout`). Nothing is added to them: no preamble, no fence,
no schema, no sampling but the benchmark's own. How often a question is asked, and which replies count, is the
benchmark's rule too: `attempts` and `read`.
"""

import hashlib
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

import msgspec

from adjudge.judges.checkout import Template
from adjudge.judges.question import Answer, Question, canonical, own_fields
from adjudge.judges.text import encodable

__all__ = ["MAX_SAID_CHARS", "PublishedQuestion", "Said", "UnreadableReply", "Wording"]

T = TypeVar("T")
Role = Literal["system", "user"]

MAX_SAID_CHARS = 2_000_000


class UnreadableReply(ValueError):
    """A reply that the benchmark's own rules cannot read: it asks again."""


class Said(Answer, frozen=True, kw_only=True):
    """The reply as it is."""

    text: Annotated[str, msgspec.Meta(max_length=MAX_SAID_CHARS)]


class Wording(msgspec.Struct, frozen=True):
    """A request as the benchmark sends it: its messages, and every further parameter by its name in the request.

    A message of several templates is a list of text parts. `digest` (blake2b-128) covers both.
    """

    turns: tuple[tuple[Role, Template | tuple[Template, ...]], ...]
    parameters: dict[str, Any]
    digest: bytes

    @classmethod
    def of(
        cls, user: Template | tuple[Template, ...], system: Template | None = None, **parameters: Any
    ) -> "Wording":
        """The wording of a user message, after a system message if there is one."""
        turns: tuple[tuple[Role, Template | tuple[Template, ...]], ...] = (("user", user),)
        if system is not None:
            turns = (("system", system), *turns)
        identity = ([(role, _digests(said)) for role, said in turns], parameters)
        digest = hashlib.blake2b(msgspec.msgpack.encode(identity), digest_size=16)
        return cls(turns, parameters, digest.digest())


def _digests(said: Template | tuple[Template, ...]) -> Any:
    return said.digest if isinstance(said, Template) else [part.digest for part in said]


class PublishedQuestion(Question[Said], Generic[T], frozen=True, kw_only=True):
    """Base of every question in a benchmark's words; `read` gives a `T`.

    `attempts` says how often it may be asked until a reply can be read; `attempt`, from 0, is part of the key. What the
    wording's templates show are the context's sections and the fields of the subclass, by their names.
    """

    attempts: ClassVar[int] = 1
    answer = Said

    wording: Wording
    attempt: int = 0

    def read(self, text: str) -> T:
        """What the reply `text` says. Raises UnreadableReply. Linear in the text, which is untrusted."""
        raise NotImplementedError

    def example(self) -> str:
        """A reply of ordinary length that `read` accepts: what a dry run assumes."""
        raise NotImplementedError

    @property
    def is_last(self) -> bool:
        """Whether a reply that cannot be read ends the attempts: then it is judge_unparseable."""
        return self.attempt + 1 >= self.attempts

    def messages(self) -> list[dict[str, str]]:
        """The messages of the request as a chat template takes them: the parts of one joined, as servers do.

        Lone surrogates, which no server takes, become U+FFFD.
        """
        return [{"role": role, "content": "\n".join(parts)} for role, _, parts in self._filled()]

    def sent(self) -> list[dict[str, Any]]:
        """The messages of the request as they are sent."""
        return [
            {
                "role": role,
                "content": [{"type": "text", "text": part} for part in parts] if listed else parts[0],
            }
            for role, listed, parts in self._filled()
        ]

    def _filled(self) -> Iterator[tuple[Role, bool, list[str]]]:
        """Each message: who says it, whether it is a list of parts, and the parts."""
        values = {section.name: section.text for section in self.context.sections} | self.fields()
        for role, said in self.wording.turns:
            listed = isinstance(said, tuple)
            parts = said if isinstance(said, tuple) else (said,)
            yield role, listed, [encodable(part.fill(values)) for part in parts]

    def fields(self) -> dict[str, str]:
        """The fields of the subclass as text."""
        return {name: str(getattr(self, name)) for name in own_fields(type(self)) if name not in _BASE}

    def identity(self) -> bytes:
        """Type, version, wording, attempt and fields as canonical bytes, for the key."""
        values = [canonical(getattr(self, name)) for name in own_fields(type(self)) if name not in _BASE]
        kind = (type(self).__name__, self.version, self.language)
        return msgspec.msgpack.encode((*kind, self.wording.digest, self.attempt, values))


_BASE = frozenset(PublishedQuestion.__struct_fields__)
