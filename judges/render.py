"""A question as the messages a chat model reads.

Order: one constant preamble, the context, then the instructions and the question, so that all questions about
one context share a token prefix. Untrusted text stands between marks that its writer cannot know: they derive from
the context's hash and a secret, are constant for one context, and are removed from the text itself.
"""

import hashlib
import os
from typing import TypeVar

from adjudge.judges.published import PublishedQuestion
from adjudge.judges.question import Answer, Context, Media, Question
from adjudge.judges.schema import Schema, shape
from adjudge.judges.text import encodable
from adjudge.prompts import Prompt, PromptBook

__all__ = ["Message", "content_parts", "messages", "prompt_digests", "secret_from_environment"]

A = TypeVar("A", bound=Answer)

Message = dict[str, str]
Part = dict[str, object]

_PREAMBLE = "preamble"


def secret_from_environment() -> bytes:
    """The deployment's fence secret, from ADJUDGE_FENCE_SECRET; one constant for all where it is unset."""
    return os.environ.get("ADJUDGE_FENCE_SECRET", "adjudge").encode()


def messages(question: Question[A], book: PromptBook, schema: Schema, secret: bytes) -> list[Message]:
    """System and user message of `question`: preamble; then context, instructions, fields, answer shape.

    A published question has messages of its own. Lone surrogates, which no server takes, become U+FFFD.
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


def _mark(context: Context, secret: bytes) -> str:
    return hashlib.blake2b(context.digest, key=secret[:64], digest_size=6).hexdigest()


def _fenced(name: str, text: str, mark: str) -> str:
    return f"<<{mark} {name}\n{text.replace(mark, '*')}\n{mark}>>"
