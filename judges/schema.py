"""Answer types as JSON schemas for constrained decoding, and replies back into answers.

A reply is read by position: it is accepted if all of it is JSON of the answer type, or if such an object ends it, on
lines of its own or after a colon; fences, end tokens and white space aside. JSON in the prose before it is a draft or a
quotation. What only comes beside a valid verdict is trimmed: an unknown key, and an analysis that is null, too long, or
holds half a character. Nothing else is salvaged: keys are not guessed, numbers are not clipped, and an object with the
same key twice is not read.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import Any, Generic, TypeVar, get_type_hints

import msgspec

from adjudge.judges.judgment import encodable
from adjudge.judges.marks import ANSWERS
from adjudge.judges.plural import plural
from adjudge.judges.question import Answer, Choice, Question, numbered

A = TypeVar("A", bound=Answer)
Schema = dict[str, Any]

MAX_VALUES = 101
_STRIP = ("title", "description", "default", "examples", "$defs", "shared")
_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_BRACE = re.compile(r'\}|\{\s*["}]?')  # an object begins with a quote or ends at once
_END_TOKEN = re.compile(
    r"(?:</s>|<\|?[a-z_]{2,20}(?::[a-z_]{2,20})?\|?>|\[\|[a-z]{2,20}\|\]|<\uff5c[^<>]{2,30}\uff5c>)\s*$",
    re.IGNORECASE,
)
_MOST_END_TOKENS = 4
_BLANKS = "\ufeff\u200b\u200c\u200d\u2060\xa0\u3000 \t\r\n"  # what a reply may have around it unseen
_FENCE = re.compile(r"(`{3,20}|~{3,20})\Z")
_OPENED = re.compile(r"(`{3,20}|~{3,20})[ \t]{0,4}(?:json[a-z0-9]{0,5})?\Z", re.IGNORECASE)
# Around an answer: a tag, a token of the template, TeX.
_WRAPPED = re.compile(r"</([a-z_]{2,20})>\Z", re.IGNORECASE)
_TOKENS = re.compile("|".join(re.escape(opening) for opening, _ in ANSWERS))
_SENTENCE_ENDS = (".", "!", "?", ":", "\u3002", "\uff1a")
_BOXED = re.compile(r"(?:\$\$?|\\\[)?\s{0,4}\\boxed\{(?P<inside>.*)\}\s{0,4}(?:\$\$?|\\\])?\.?", re.DOTALL)
_SHORTEST_ANALYSIS = 24


class AnswerTypeError(TypeError):
    """An answer type breaks the rules of `Answer`; the message names the type and the field."""


class UnparseableReply(ValueError):
    """A reply does not fit the answer type; the message says where."""


def schema_of(question: Question[A], analysis: bool) -> Schema:
    """The schema of the answer to this very question: `json_schema` with its count and its options."""
    return json_schema(question.answer, question.count, analysis, question.options)


@cache
def json_schema(answer: type[Answer], count: int, analysis: bool, options: tuple[float, ...] = ()) -> Schema:
    """The schema of `answer` for a question of `count` items, self-contained and fully required.

    Without `analysis` (thinking models, expected scores) the fields of that name are dropped; `options` are the
    values of its `Choice` fields. Raises AnswerTypeError for an answer type that cannot be constrained.
    """
    name = answer.__name__
    if not 0 <= count <= answer.most_items:
        raise AnswerTypeError(f"{name}: {count} numbered items, at most {answer.most_items} fit one question")
    raw = msgspec.json.schema(answer)
    rules = _Rules(raw.get("$defs", {}), count, analysis, options)
    return rules.plain(raw, name, top=True)


class _Rules:
    """Turns msgspec's schema of a type into one that a server can constrain, or says why it cannot."""

    def __init__(self, definitions: Schema, count: int, analysis: bool, options: tuple[float, ...]) -> None:
        self._definitions = definitions
        self._count = count
        self._analysis = analysis
        self._options = options

    def plain(
        self, node: Schema, where: str, top: bool = False, inside: tuple[str, ...] = (), item: bool = False
    ) -> Schema:
        """`node` without references; `inside` are those that led here."""
        if "$ref" in node:
            name = node["$ref"].rsplit("/", 1)[1]
            if name in inside:
                raise AnswerTypeError(f"{where}: {name} contains itself")
            return self.plain(self._definitions[name], where, top, (*inside, name), item)
        if node.get("choice"):
            raise AnswerTypeError(f"{where}: a choice must be a field of the answer itself or of its items")
        if "enum" in node:
            return _enumeration(node["enum"], where)
        if "anyOf" in node:
            return {"anyOf": [self.plain(option, where, inside=inside) for option in node["anyOf"]]}
        kind = node.get("type")
        if kind == "object":
            return self._object(node, where, top, inside, item)
        if kind == "array":
            return self._array(node, where, inside)
        if kind in ("number", "integer"):
            return _enumeration(_steps(node, where), where)
        if kind == "string":
            if "maxLength" not in node:
                raise AnswerTypeError(f"{where}: a string needs a maximum length")
            if node.get("shared"):
                node = {**node, "maxLength": max(node["maxLength"] // max(self._count, 1), 1)}
        elif kind not in ("boolean", "null"):
            raise AnswerTypeError(f"{where}: a type that a server cannot constrain")
        return {key: value for key, value in node.items() if key not in _STRIP}

    def _object(
        self, node: Schema, where: str, top: bool, inside: tuple[str, ...], item: bool = False
    ) -> Schema:
        fields = node.get("properties", {})
        names = [name for name in fields if self._analysis or name != "analysis"]
        if not names:
            raise AnswerTypeError(f"{where}: an object without fields")
        if "analysis" in fields and (next(iter(fields)) != "analysis" or "analysis" in node["required"]):
            raise AnswerTypeError(f"{where}: analysis must be the first field and have a default")
        properties = {}
        for name in names:
            items = fields[name].get("additionalProperties")
            if top and isinstance(items, dict):
                properties[name] = self._numbered(items, f"{where}.{name}", inside)
            elif (top or item) and fields[name].get("choice"):
                properties[name] = self._choice(f"{where}.{name}")
            else:
                properties[name] = self.plain(fields[name], f"{where}.{name}", inside=inside)
        return _closed(properties)

    def _numbered(self, items: Schema, where: str, inside: tuple[str, ...]) -> Schema:
        if self._count == 0:
            raise AnswerTypeError(f"{where}: numbered items in a question without a count")
        item = self.plain(items, f"{where}.*", inside=inside, item=True)
        return _closed(dict.fromkeys(numbered(self._count), item))

    def _choice(self, where: str) -> Schema:
        if len(self._options) < 2:
            raise AnswerTypeError(f"{where}: a choice in a question with {len(self._options)} options")
        return _enumeration(self._options, where)

    def _array(self, node: Schema, where: str, inside: tuple[str, ...]) -> Schema:
        items = node.get("items")
        if "maxItems" not in node or not isinstance(items, dict):
            raise AnswerTypeError(f"{where}: a list needs a maximum length and one type of items")
        return {
            "type": "array",
            "items": self.plain(items, f"{where}[]", inside=inside),
            **{key: node[key] for key in ("minItems", "maxItems") if key in node},
        }


def _closed(properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _enumeration(values: Iterable[Any], where: str) -> Schema:
    """`values` with their type beside them, which some servers insist on."""
    values = [whole(value) if isinstance(value, float) else value for value in values]
    if len(values) > MAX_VALUES:
        raise AnswerTypeError(f"{where}: {len(values)} values to choose from, at most {MAX_VALUES}")
    kinds = {_KINDS[type(value)] for value in values}
    if kinds == {"integer", "number"}:
        kinds = {"number"}
    if len(kinds) == 1:
        return {"type": kinds.pop(), "enum": values}
    return {"enum": values}


def _steps(node: Schema, where: str) -> list[float]:
    low, high = node.get("minimum"), node.get("maximum")
    if low is None or high is None:
        raise AnswerTypeError(f"{where}: a number needs both bounds (ge, le)")
    step = node.get("multipleOf", 1 if node["type"] == "integer" else None)
    if step is None:
        raise AnswerTypeError(f"{where}: a number needs a step (multiple_of)")
    steps = math.floor((high - low) / step)
    if steps >= MAX_VALUES:
        raise AnswerTypeError(f"{where}: {steps + 1} values to choose from, at most {MAX_VALUES}")
    values = [low + i * step for i in range(steps + 1)]
    if any(math.fmod(value, step) for value in values):
        raise AnswerTypeError(
            f"{where}: {step} does not count exactly from {low}; take 0.5, 0.25 or the like"
        )
    return values


def whole(value: float) -> float:
    """`value` as a schema has it: 2, not 2.0."""
    return int(value) if value.is_integer() else value


def max_tokens(schema: Schema) -> int:
    """Tokens that suffice for nearly any valid answer: two per character of free text, else one per character."""
    return 16 + _longest(schema)


def most_tokens(schema: Schema) -> int:
    """Tokens that no valid answer exceeds, not even one written in escapes (six characters) and spread over lines."""
    return 3 * max_tokens(schema)


def likely_tokens(schema: Schema) -> int:
    """Tokens that most answers stay below: one per character of free text."""
    return (max_tokens(schema) + 1) // 2


def shortened(schema: Schema, eighths: int) -> Schema:
    """`schema` with every analysis cut to so many eighths of its length, and the same verdicts."""
    if "anyOf" in schema:
        return {**schema, "anyOf": [shortened(option, eighths) for option in schema["anyOf"]]}
    if "items" in schema:
        return {**schema, "items": shortened(schema["items"], eighths)}
    properties = {name: shortened(inner, eighths) for name, inner in schema.get("properties", {}).items()}
    if "maxLength" in properties.get("analysis", ()):
        analysis = properties["analysis"]
        cut = max(analysis["maxLength"] * eighths // 8, min(analysis["maxLength"], _SHORTEST_ANALYSIS))
        properties["analysis"] = {**analysis, "maxLength": cut}
    return {**schema, "properties": properties} if properties else schema


def _longest(node: Schema) -> int:
    if "enum" in node:
        return max(len(msgspec.json.encode(value)) for value in node["enum"])
    if "anyOf" in node:
        return max(_longest(option) for option in node["anyOf"])
    kind = node.get("type")
    if kind == "object":
        return 2 + sum(len(name) + 6 + _longest(value) for name, value in node["properties"].items())
    if kind == "array":
        return 2 + int(node["maxItems"]) * (2 + _longest(node["items"]))
    if kind == "string":
        return 2 + 2 * int(node["maxLength"])
    return 6  # true, false, null


def shape(schema: Schema) -> str:
    """One line that describes `schema` to a judge, for servers that do not constrain."""
    if "enum" in schema:
        return _choices(schema["enum"])
    if "anyOf" in schema:
        return " | ".join(shape(option) for option in schema["anyOf"])
    kind = schema.get("type")
    if kind == "object":
        inner = ", ".join(f'"{name}": {shape(value)}' for name, value in _runs(schema["properties"]))
        return "{" + inner + "}"
    if kind == "array":
        return f"[{shape(schema['items'])}, ... at most {schema['maxItems']}]"
    if kind == "string":
        return f"text of at most {schema['maxLength']} characters"
    return "true | false" if kind == "boolean" else "null"


def _choices(values: list[Any]) -> str:
    numbers = all(isinstance(value, int | float) for value in values)
    if len(values) > 6 and numbers and len({round(b - a, 9) for a, b in pairwise(values)}) == 1:
        return f"a number from {values[0]} to {values[-1]} in steps of {values[1] - values[0]}"
    return " | ".join(msgspec.json.encode(value).decode() for value in values)


def _runs(properties: Schema) -> list[tuple[str, Schema]]:
    keys = list(properties)
    if len(keys) > 2 and keys == list(numbered(len(keys))):
        return [(f'{keys[0]}", ..., "{keys[-1]}', properties[keys[0]])]
    return list(properties.items())


class Decoded(msgspec.Struct, Generic[A], frozen=True):
    """An answer, and the names of the fields that were `trimmed` to read it."""

    answer: A
    trimmed: tuple[str, ...] = ()


def decode(question: Question[A], text: str) -> Decoded[A]:
    """The answer in a reply's `text`, in linear time.

    Raises UnparseableReply if it does not fit the answer type or does not end the reply; the message names the field.
    """
    text, fields = _found(text)
    try:
        return Decoded(_typed(question, text))
    except UnparseableReply:
        trimmed: dict[str, None] = {}
        kept = _trimmed(fields, schema_of(question, analysis=True), "", trimmed)
        return Decoded(_typed(question, json.dumps(kept)), tuple(trimmed))


def object_in(text: str) -> dict[str, Any]:
    """The JSON object that a reply's `text` is, or that ends it. Raises UnparseableReply."""
    return _found(text)[1]


def _found(text: str) -> tuple[str, dict[str, Any]]:
    """That object, as it is written and as it is read."""
    text = _bare(text)
    try:
        return text, _object(text)
    except UnparseableReply:
        embedded = _last_object(text)
        if embedded in ("", text):
            raise
        return embedded, _object(embedded)


def _bare(text: str) -> str:
    """`text` without the tokens and the fence around it, which belong to the reply's form."""
    text = text.strip(_BLANKS).removeprefix("<s>").lstrip(_BLANKS)
    for _ in range(_MOST_END_TOKENS):
        tail = max(len(text) - 40, 0)
        token = _END_TOKEN.search(text, tail)
        if token is None:
            break
        text = text[: token.start()].rstrip()
    text = _unwrapped(text)
    fence = _FENCE.search(text, max(len(text) - 20, 0))
    if fence is not None:
        text = text[: fence.start()].rstrip()
        label, _, inside = text.removeprefix(fence[1]).partition("\n")
        if text.startswith(fence[1]) and (not label.strip() or label.strip().isalnum()):
            text = inside.strip()
    return text


def _unwrapped(text: str) -> str:
    """`text` without the tag, token or box around the answer that ends it; behind a sentence, on a line of its own."""
    if text.startswith("{"):
        return text
    token = _TOKENS.search(text)
    tag = _WRAPPED.search(text, max(len(text) - 24, 0))
    if token is not None:
        before, inside = text[: token.start()], text[token.end() :]
    elif tag is not None:
        before, opened, inside = text[: tag.start()].partition(f"<{tag[1]}>")
        if not opened:
            return text
    else:
        boxed = _BOXED.fullmatch(text)
        return text if boxed is None else boxed["inside"].strip()
    apart = "\n" if before.rstrip().endswith(_SENTENCE_ENDS) else ""
    return f"{before}{apart}{inside}".strip()


def _object(text: str) -> dict[str, Any]:
    """The only JSON object in `text`, whose keys differ."""
    try:
        found = _READER.decode(text)
    except UnparseableReply:
        raise
    except (ValueError, RecursionError) as error:
        raise UnparseableReply("not one JSON object") from error
    if not isinstance(found, dict):
        raise UnparseableReply("not one JSON object")
    return found


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        double, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise UnparseableReply(f"{double[:60]}: given twice")
    return found


# Not strict: a server that constrains its replies may allow line breaks in a string, as llama-cpp-python 0.3 does.
_READER = json.JSONDecoder(object_pairs_hook=_pairs, strict=False)


def _last_object(text: str) -> str:
    """The JSON object that ends `text`, on lines of its own or after a colon; nothing if there is none.

    Raises UnparseableReply if the reply begins with another object, for a brace in the prose that begins no JSON object
    although a quote follows it, and for braces that do not match: what encloses an object may be what the judge meant.
    """
    first = last = ""
    start = end = depth = 0
    while (brace := _BRACE.search(text, end)) is not None:
        place, end = brace.span()
        if brace[0] == "}":
            depth -= 1
        elif not brace[0].endswith(('"', "}")):
            depth += 1
        elif not depth:
            start, end = place, _end_of_object(text, place)
            last = text[start:end]
            before = text[:start].strip()
            first = first or ("" if before and not _OPENED.fullmatch(before) else last)
        else:
            break
        if depth < 0:
            break
    if depth:
        raise UnparseableReply("braces that do not match")
    if not last or end < len(text):
        raise UnparseableReply("no JSON object ends the reply")
    before = text[:start].rstrip(" \t")
    if before and not before.endswith(("\n", "\r", ":", "\uff1a")):
        raise UnparseableReply("the last JSON object stands within a sentence")
    if first not in ("", last):
        raise UnparseableReply("several JSON objects that differ")
    return last


def _end_of_object(text: str, start: int) -> int:
    try:
        return _FIRST_OBJECT.raw_decode(text, start)[1]
    except (ValueError, RecursionError) as error:
        raise UnparseableReply("a brace that begins no JSON object") from error


_FIRST_OBJECT = json.JSONDecoder(strict=False)


def _trimmed(value: Any, schema: Schema, where: str, trimmed: dict[str, None]) -> Any:
    """`value` without what no verdict needs; the places of what was left out or cut are put into `trimmed`."""
    if isinstance(value, list) and "items" in schema:
        return [_trimmed(item, schema["items"], f"{where}[]", trimmed) for item in value]
    known = schema.get("properties")
    if not isinstance(value, dict) or known is None:
        return value
    kept: dict[str, Any] = {}
    numbers = list(known) == list(numbered(len(known)))
    for name, inner in value.items():
        place = f"{where}.{name}".lstrip(".")
        if name not in known:
            if numbers:  # a verdict on something that was not asked: the others may be shifted
                kept[name] = inner
            else:
                trimmed[place[:60]] = None
        elif name == "analysis" and (said := _cut(inner, known[name])) != inner:
            trimmed[place[:60]] = None
            kept[name] = said
        else:
            kept[name] = _trimmed(inner, known[name], place, trimmed)
    return kept


def _cut(analysis: Any, schema: Schema) -> Any:
    """An analysis that fits, of one that is missing, too long, or not encodable."""
    if analysis is None:
        return ""
    if not isinstance(analysis, str):
        return analysis
    return encodable(analysis[: int(schema["maxLength"])])


def _typed(question: Question[A], text: str) -> A:
    try:
        answer = _decoder(question.answer).decode(text)
    except msgspec.MsgspecError as error:
        raise UnparseableReply(str(error)) from error
    except (UnicodeEncodeError, RecursionError) as error:
        raise UnparseableReply(f"not JSON text: {type(error).__name__}") from error
    for field in answer.__struct_fields__:
        value = getattr(answer, field)
        if isinstance(value, dict):
            if list(value) != list(numbered(question.count)):
                wanted = set(numbered(question.count))
                missing, unknown = sorted(wanted - value.keys()), sorted(value.keys() - wanted)
                if missing:
                    raise UnparseableReply(f"{field}: {', '.join(missing)} missing")
                if unknown:
                    raise UnparseableReply(f"{field}: {plural(len(unknown), 'unknown key')}")
            for key, item in value.items():
                if isinstance(item, Answer):
                    _check_choices(item, question.options, f"{field}.{key}.")
    _check_choices(answer, question.options, "")
    return question.typed(answer)


def _check_choices(answer: Answer, options: tuple[float, ...], where: str) -> None:
    for field in _choice_fields(type(answer)):
        if getattr(answer, field) not in options:
            raise UnparseableReply(f"{where}{field}: {getattr(answer, field)} is not one of {options}")


@cache
def _choice_fields(answer: type[Answer]) -> frozenset[str]:
    """Names of the fields of type `Choice`."""
    kinds = get_type_hints(answer, include_extras=True)
    return frozenset(name for name, kind in kinds.items() if kind == Choice)


@cache
def _decoder(answer: type[Answer]) -> msgspec.json.Decoder[Answer]:
    return msgspec.json.Decoder(answer)
