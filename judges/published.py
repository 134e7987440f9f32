"""A question in a benchmark's own words: its messages are the benchmark's, its answer is free text.

The prompts are read as data from the user's checkout of the benchmark: its Python files are parsed, never imported.
Nothing is added to them: no preamble, no fence, no schema, no sampling but the benchmark's own. The benchmark also
rules how often a question is asked, and which replies count: `attempts` and `read`.

A prompt is a constant, or constants joined by `+` (sent unchanged, filled by `str.format`, or by replacing markers), or
an f-string whose placeholders are plain names. Anything else is refused with file and line. Placeholders are filled in
a single pass.
"""

import ast
import hashlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

import msgspec

from adjudge.judges.judgment import encodable
from adjudge.judges.question import Answer, Question, canonical, own_fields

__all__ = [
    "MAX_SAID_CHARS",
    "Checkout",
    "CheckoutError",
    "PublishedQuestion",
    "Said",
    "Template",
    "UnreadableReply",
    "Wording",
    "Wordings",
    "digests",
]

MAX_FILE_BYTES = 4_000_000
MAX_JOINED = 20  # constants within one
_UNCHANGED = "use an unchanged checkout of the benchmark"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_HOLDERS = (ast.stmt, ast.excepthandler, ast.match_case)


class CheckoutError(ValueError):
    """A file of the checkout is missing, or holds no prompt that can be read as data; the message names the place."""


class Template(msgspec.Struct, frozen=True):
    """A prompt as pieces: a text, and the field that follows it ("" for none). `where` is its place in the checkout.

    `digest` is the blake2b-128 of the pieces.
    """

    where: str
    pieces: tuple[tuple[str, str], ...]
    digest: bytes

    @classmethod
    def of(cls, where: str, pieces: Iterator[tuple[str, str]]) -> "Template":
        """The template of `pieces`, texts that follow each other joined."""
        kept = tuple(_joined(pieces))
        encoded = msgspec.msgpack.encode(
            [(text.encode("utf-8", "surrogatepass"), field) for text, field in kept]
        )
        return cls(where, kept, hashlib.blake2b(encoded, digest_size=16).digest())

    @property
    def fields(self) -> frozenset[str]:
        """The names of the fields that it shows."""
        return frozenset(field for _, field in self.pieces if field)

    def fill(self, values: Mapping[str, str]) -> str:
        """The prompt with every field in its place, in a single pass; KeyError when one is missing."""
        return "".join(text + values[field] if field else text for text, field in self.pieces)


class Checkout:
    """The prompts of the benchmark in `folder`, by file and name. All methods raise CheckoutError.

    A name is a path of names: functions and classes around it, a variable, keys of the dictionary assigned to it:
    `"Judge.ask.prompt"`, `"prompts.short"`. A variable that is assigned several times needs `nth`, from 0.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._trees: dict[str, ast.Module] = {}

    def plain(self, file: str, name: str, nth: int | None = None) -> Template:
        """A constant that is sent as it is."""
        where, text = self._text(file, name, nth)
        return Template.of(where, iter([(text, "")]))

    def formatted(self, file: str, name: str, nth: int | None = None) -> Template:
        """A constant that the benchmark fills with `str.format` and plain names."""
        where, text = self._text(file, name, nth)
        return Template.of(where, _format_pieces(where, text))

    def replaced(self, file: str, name: str, markers: Mapping[str, str], nth: int | None = None) -> Template:
        """A constant in which the benchmark replaces `markers`, each by the field it maps to."""
        where, text = self._text(file, name, nth)
        missing = [marker for marker in markers if marker not in text]
        if missing:
            raise CheckoutError(f"{where}: holds no {missing[0]}; {_UNCHANGED}")
        return Template.of(where, _marked_pieces(text, markers))

    def fstring(
        self, file: str, name: str, fields: Mapping[str, str] | None = None, nth: int | None = None
    ) -> Template:
        """An f-string. `fields` maps the source of a placeholder to its field; plain names map to themselves."""
        where, node = self._found(file, name, nth)
        return Template.of(where, _fstring_pieces(where, node, fields or {}))

    def inline(self, file: str, scope: str, fields: Mapping[str, str], nth: int | None = None) -> Template:
        """The f-string within `scope` (a function) whose placeholders are exactly the keys of `fields`.

        Of several, `nth` counts from 0 in the order of the source.
        """
        where, node = self._found(file, scope, None)
        strings = [
            each
            for each in ast.walk(node)
            if isinstance(each, ast.JoinedStr) and _sources(each) == set(fields)
        ]
        strings.sort(key=lambda each: (each.lineno, each.col_offset))
        made = (Template.of(where, _fstring_pieces(where, each, fields)) for each in strings)
        found = list({template.digest: template for template in made}.values())
        if len(found) != 1 and (nth is None or len(found) <= nth):
            raise CheckoutError(
                f"{where}: holds {len(found)} f-strings with {', '.join(fields)}, not one; {_UNCHANGED}"
            )
        return found[nth or 0]

    def appended(self, file: str, scope: str) -> Template:
        """The constant that `scope` (a function) puts behind a text by `+`."""
        where, node = self._found(file, scope, None)
        found = {
            each.right.value
            for each in ast.walk(node)
            if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Add)
            if isinstance(each.right, ast.Constant) and isinstance(each.right.value, str)
        }
        if len(found) != 1:
            raise CheckoutError(f"{where}: adds {len(found)} constants to texts, not one; {_UNCHANGED}")
        return Template.of(where, iter([(found.pop(), "")]))

    def passed(self, file: str, scope: str, name: str) -> Template:
        """The constant that `scope` (a function) passes as the argument `name`, or under this key of a dictionary."""
        where, node = self._found(file, scope, None)
        found = {
            value.value
            for each in ast.walk(node)
            for key, value in _passed(each)
            if key == name and isinstance(value, ast.Constant) and isinstance(value.value, str)
        }
        if len(found) != 1:
            raise CheckoutError(f"{where}: passes {len(found)} constants as {name}, not one; {_UNCHANGED}")
        return Template.of(where, iter([(found.pop(), "")]))

    def _text(self, file: str, name: str, nth: int | None) -> tuple[str, str]:
        """The place and text of a constant."""
        where, node = self._found(file, name, nth)
        return where, _constant(where, node, self._tree(file))

    def _found(self, file: str, name: str, nth: int | None) -> tuple[str, ast.AST]:
        """The place and node of `name`."""
        node: ast.AST = self._tree(file)
        for step in name.split("."):
            found = list(_named(node, step))
            if len(found) != 1 and (nth is None or len(found) <= nth):
                count = "nothing" if not found else f"{len(found)} values"
                raise CheckoutError(f"{self.folder / file}: holds {count} named {name}; {_UNCHANGED}")
            node = found[0] if len(found) == 1 else found[nth or 0]
        return f"{self.folder / file}:{getattr(node, 'lineno', 0)}", node

    def _tree(self, file: str) -> ast.Module:
        if file not in self._trees:
            self._trees[file] = _parsed(self.folder / file)
        return self._trees[file]


def _parsed(file: Path) -> ast.Module:
    try:
        with file.open("rb") as opened:
            source = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise CheckoutError(
            f"{file}: cannot be read: {error.strerror}; set checkout: to the benchmark's repository"
        ) from error
    if len(source) > MAX_FILE_BYTES:
        raise CheckoutError(f"{file}: has more than {MAX_FILE_BYTES:,} bytes; {_UNCHANGED}")
    try:
        return _tree_of(source)
    except SyntaxError as error:
        raise CheckoutError(
            f"{file}:{error.lineno or 0}: not valid Python: {error.msg}; {_UNCHANGED}"
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise CheckoutError(f"{file}: not valid Python: {type(error).__name__}; {_UNCHANGED}") from error


def _tree_of(source: bytes) -> ast.Module:
    try:
        return ast.parse(source)
    except SystemError:  # CPython: something that the garbage collector called meanwhile has parsed too
        return ast.parse(source)


def _named(node: ast.AST, name: str) -> Iterator[ast.AST]:
    """The values of `name` in a scope, in the order of the source, or under a dictionary's key."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == name:
                yield value
        return
    for each in _own(node):
        if isinstance(each, _SCOPES) and each.name == name:
            yield each
        elif isinstance(each, ast.AugAssign) and _is(each.target, name):
            yield each  # refused where it is read, for it is not a constant
        elif isinstance(each, ast.Assign | ast.AnnAssign) and each.value is not None:
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            if any(_is(target, name) for target in targets):
                yield each.value


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """The statements of `scope` in the order of the source, without those of the scopes in it."""
    if not isinstance(scope, (*_SCOPES, ast.Module)):
        return
    waiting: list[ast.AST] = list(reversed(scope.body))
    while waiting:
        each = waiting.pop()
        yield each
        if not isinstance(each, _SCOPES):
            held = [child for child in ast.iter_child_nodes(each) if isinstance(child, _HOLDERS)]
            waiting += reversed(held)


def _passed(node: ast.AST) -> Iterator[tuple[object, ast.AST]]:
    """The arguments of a call by name, or the values of a dictionary by key."""
    if isinstance(node, ast.Call):
        yield from ((one.arg, one.value) for one in node.keywords)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            yield getattr(key, "value", None), value


def _is(target: ast.AST, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name


def _constant(where: str, node: ast.AST, module: ast.Module, depth: int = 0) -> str:
    """The text of a constant: a literal, a module's constant by its name, or several of them joined by `+`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if depth < MAX_JOINED and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return "".join(_constant(where, side, module, depth + 1) for side in (node.left, node.right))
    if depth < MAX_JOINED and isinstance(node, ast.Name):
        found = list(_named(module, node.id))
        if len(found) == 1:
            return _constant(where, found[0], module, MAX_JOINED)
    raise CheckoutError(f"{where}: {type(node).__name__} where a text constant was expected; {_UNCHANGED}")


def _format_pieces(where: str, text: str) -> Iterator[tuple[str, str]]:
    try:
        for literal, field, spec, conversion in Formatter().parse(text):
            if field is not None and (spec or conversion or not field.isidentifier()):
                raise CheckoutError(f"{where}: the placeholder {{{field}}} is not a plain name; {_UNCHANGED}")
            yield literal, field or ""
    except ValueError as error:
        if isinstance(error, CheckoutError):
            raise
        raise CheckoutError(f"{where}: not a template of str.format: {error}; {_UNCHANGED}") from error


def _marked_pieces(text: str, markers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The first marker of `text`, then that of the rest; of two that begin at one place, the longer one."""
    start = 0
    while places := [(place, -len(one), one) for one in markers if (place := text.find(one, start)) >= 0]:
        place, _, marker = min(places)
        yield text[start:place], markers[marker]
        start = place + len(marker)
    yield text[start:], ""


def _fstring_pieces(where: str, node: ast.AST, fields: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if not isinstance(node, ast.JoinedStr):
        raise CheckoutError(f"{where}: {type(node).__name__} where an f-string was expected; {_UNCHANGED}")
    for value in node.values:
        if isinstance(value, ast.Constant):
            yield str(value.value), ""
        elif isinstance(value, ast.FormattedValue) and value.conversion == -1 and not value.format_spec:
            source = ast.unparse(value.value)
            if source not in fields and not isinstance(value.value, ast.Name):
                raise CheckoutError(
                    f"{where.rpartition(':')[0]}:{value.lineno}: the placeholder {{{source}}} is not a plain name; "
                    f"{_UNCHANGED}"
                )
            yield "", fields.get(source, source)
        else:
            raise CheckoutError(f"{where}: a placeholder with a conversion or a format; {_UNCHANGED}")


def _joined(pieces: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    texts: list[str] = []
    for text, field in pieces:
        texts.append(text)
        if field:
            yield "".join(texts), field
            texts.clear()
    if any(texts):
        yield "".join(texts), ""


def _sources(node: ast.JoinedStr) -> Collection[str]:
    return {ast.unparse(one.value) for one in node.values if isinstance(one, ast.FormattedValue)}


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
        digests = [
            (role, said.digest if isinstance(said, Template) else [part.digest for part in said])
            for role, said in turns
        ]
        identity = (digests, parameters)
        digest = hashlib.blake2b(msgspec.msgpack.encode(identity), digest_size=16)
        return cls(turns, parameters, digest.digest())


Wordings = Mapping[str, Wording]
"""The requests of one checkout, by what they are for."""


def digests(protocol: str, parts: Mapping[str, Wording | Template]) -> dict[str, str]:
    """The digests (hex) of all that `protocol` may send, by what it is for."""
    return {f"{protocol}.{name}": part.digest.hex() for name, part in parts.items()}


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
        """The meaning of the reply `text`. Raises UnreadableReply. Linear in the text, which is untrusted."""
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
