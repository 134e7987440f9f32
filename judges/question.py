"""A typed question, over a context that many questions share.

A question type is a frozen struct beside the protocol that asks it. Its class names its prompt and its answer type; its
fields fill the prompt's placeholders; its context is the long text (a report, a page) that comes first in every prompt,
so that all questions about it share a token prefix.
"""

import hashlib
from pathlib import Path
from typing import Annotated, ClassVar, Generic, Literal, TypeVar, cast

import msgspec

from adjudge.prompts import SHIPPED

__all__ = [
    "Answer",
    "Choice",
    "Context",
    "Media",
    "Question",
    "Section",
    "canonical",
    "numbered",
    "own_fields",
    "words_of",
]

Language = Literal["en", "zh"]


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every answer type.

    Rules (checked when the schema is made): every string has a maximum length; a number with a step (`multiple_of`)
    has bounds and becomes an enumeration; a field `analysis: str` comes first; a `dict[str, X]` field holds one X
    for each of the question's numbered items (at most `most_items`), under the keys of `numbered(question.count)`; a
    string of such an X may be marked `shared`, and then its maximum length is that of all items together; a field of
    type `Choice`, of the answer or of such an X, is one of the question's `options`.
    """

    most_items: ClassVar[int] = 20


Choice = Annotated[float, msgspec.Meta(extra_json_schema={"choice": True})]
"""A number that must be one of the question's own `options`, where the data decides which values are allowed."""

A = TypeVar("A", bound=Answer)


class Section(msgspec.Struct, frozen=True):
    """A named part of a context. `name` is ours, `text` is untrusted."""

    name: str
    text: str


class Media(msgspec.Struct, frozen=True):
    """A picture, sound or film: its name, its media type (`image/png`) and its bytes in base64."""

    name: str
    type: str
    data: str

    @property
    def kind(self) -> str:
        """The kind of media that a judge must accept to be shown it: "image", "audio" or "video"."""
        return self.type.partition("/")[0]


class Context(msgspec.Struct, frozen=True):
    """The long text shared by many questions; `digest` (blake2b-128) is its identity and routing group.

    Make it with `Context.of`, which hashes once.
    """

    sections: tuple[Section, ...]
    digest: bytes
    media: tuple[Media, ...] = ()

    @classmethod
    def of(cls, *media: Media, **sections: str) -> "Context":
        """A context of media and named sections, in the order given."""
        digest = hashlib.blake2b(digest_size=16)
        for name, text in sections.items():
            raw = text.encode("utf-8", "surrogatepass")
            digest.update(b"%d %d " % (len(name), len(raw)) + name.encode())
            digest.update(raw)
        for item in media:
            digest.update(msgspec.msgpack.encode(item))
        return cls(tuple(Section(name, text) for name, text in sections.items()), digest.digest(), media)

    def __getitem__(self, name: str) -> str:
        """The text of the section `name`; KeyError if there is none."""
        for section in self.sections:
            if section.name == name:
                return section.text
        raise KeyError(name)


class Question(msgspec.Struct, Generic[A], frozen=True, kw_only=True):
    """Base of every question type.

    Class variables: `words`, what is asked for, in the words of a plan; `prompt`, the prompt file's name, and
    `folder`, where it is if it is not ours; `version`, raised when the meaning of the type changes; `answer`, the
    answer type. Fields of a subclass are strings, numbers, or tuples of strings (shown as a list with the keys of
    `numbered`); all of them are placeholders of the prompt, and part of the question's key.
    """

    words: ClassVar[str] = ""
    prompt: ClassVar[str]
    folder: ClassVar[Path] = SHIPPED
    version: ClassVar[int] = 1
    answer: ClassVar[type[Answer]]

    context: Context
    language: str = "en"

    @property
    def count(self) -> int:
        """How many numbered items the answer must hold; 0 when the answer has no `dict` field."""
        return 0

    @property
    def options(self) -> tuple[float, ...]:
        """The allowed values of the answer's `Choice` fields, at least two; empty if it has none."""
        return ()

    def lexical(self) -> A | None:
        """A model-free answer for the embedded judge, or None when this question has none."""
        return None

    def fields(self) -> dict[str, str]:
        """The prompt's placeholders: every field of the subclass as text."""
        return {name: _shown(getattr(self, name)) for name in own_fields(type(self))}

    def identity(self) -> bytes:
        """Type, version and fields (not the context, not the prompt) as canonical bytes, for the key."""
        values = [canonical(getattr(self, name)) for name in own_fields(type(self))]
        return _ENCODER.encode((type(self).__name__, self.version, self.language, values))

    def typed(self, answer: Answer) -> A:
        """`answer`, known to be of this question's answer type."""
        return cast(A, answer)


_ENCODER = msgspec.msgpack.Encoder()
_BASE_FIELDS = frozenset(Question.__struct_fields__)
_OWN: dict[type, tuple[str, ...]] = {}


def own_fields(kind: type[Question[A]]) -> tuple[str, ...]:
    """The names of the fields of `kind` that are not those of every question."""
    fields = _OWN.get(kind)
    if fields is None:
        fields = _OWN[kind] = tuple(name for name in kind.__struct_fields__ if name not in _BASE_FIELDS)
    return fields


def numbered(count: int) -> tuple[str, ...]:
    """The keys of `count` numbered items: c01, c02, ..."""
    return tuple(f"c{i:02d}" for i in range(1, count + 1))


def canonical(value: object) -> object:
    """Text as bytes, lone surrogates included."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return [canonical(item) for item in value] if isinstance(value, tuple) else value


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        # Indented, so that a line inside an item does not look like another item.
        items = ("\n    ".join(str(item).splitlines()) for item in value)
        return "\n".join(f"{key}: {item}" for key, item in zip(numbered(len(value)), items, strict=True))
    return str(value)


def words_of(question: "Question[A]") -> str:
    """What `question` asks for, in the words of its protocol; the name of its type if the protocol has none.

    A question from outside may have a placeholder of that name.
    """
    kind = type(question)
    return kind.words if isinstance(kind.words, str) and kind.words else kind.__name__
