"""Replies as DR3-Eval's code reads them, salvage included, for `call: published` alone.

JSON is searched for in the whole reply, in fences, between the first brace and the last, and from the first brace on;
truncated JSON is closed, first without its last incomplete member. All of it is linear in the reply.
"""

import ast
import json
import re
import warnings
from collections.abc import Iterator
from typing import Any

import msgspec

from adjudge.judges.published import UnreadableReply

MAX_CLAIMS, MAX_CITATIONS = 5_000, 20_000
_MAX_LITERAL = 200_000  # characters that are read as a Python literal
_JSON_FENCE, _ANY_FENCE = re.compile(r"```json\s*"), re.compile(r"```\s*")
_COMPLETE = re.compile(r"\}\s*,")
_FENCE = re.compile(r"```(?:json)?")
_FIELD = re.compile(r'"(?:results|claims)"\s*:\s*\[')
_MARKS = re.compile(r'\\.|["{}\[\]]', re.DOTALL)
_SMART = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'"})
_SCORED = re.compile(r"</score>\s*<justification>", re.IGNORECASE)
_JUSTIFIED = re.compile(r"</justification>\s*</depth_quality>", re.IGNORECASE)
_OPENED = re.compile(r"<depth_quality>(\s*<score>)?", re.IGNORECASE)
_NUMBER = re.compile(r"\d+\.?\d*")
_TAG = "depth_quality"


def json_in(text: str) -> Any:
    """The JSON value in `text`, closed where it is cut off. Raises UnreadableReply."""
    text = text.strip().translate(_SMART)
    for candidate, fix in _candidates(text):
        try:
            return json.loads(candidate)
        except json.JSONDecodeError:
            closed = _closed(candidate) if fix else None
        except (ValueError, RecursionError) as error:
            raise UnreadableReply(f"{type(error).__name__} in the reply's JSON") from error
        if closed is not None:
            return closed
    raise UnreadableReply("no JSON in the reply")


def _candidates(text: str) -> Iterator[tuple[str, bool]]:
    """Texts that may be JSON, and whether one that is not is to be closed."""
    yield text, False
    fences = _FENCE.finditer(text)
    fenced = False
    for start, end in zip(fences, fences, strict=False):
        fenced = True
        yield text[start.end() : end.start()].strip(), True
    if not fenced and (opened := _FENCE.match(text)) is not None:
        yield text[opened.end() :].strip(), True
    first, last = text.find("{"), text.rfind("}")
    if first >= 0:
        if first < last:
            yield text[first : last + 1], True
        yield text[first:], True


def _closed(text: str) -> Any:
    """The value of JSON that is cut off; None if closing it does not make it JSON."""
    for candidate in _closings(text.strip()):
        try:
            found = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        return found
    return None


def _closings(text: str) -> Iterator[str]:
    if not text:
        return
    whole = text.rstrip().removesuffix("...").rstrip() if text.endswith("...") else text
    comma = whole.rfind(",")
    after = whole[comma + 1 :].strip()
    if comma > 0 and after and not after.endswith(("}", "]", '"')):
        yield _with_ends(whole[:comma])
    yield _with_ends(whole)
    kept = _kept(text)
    if kept is not None:
        yield kept


def _with_ends(text: str) -> str:
    """`text` with as many closing marks as it lacks, brackets before braces."""
    quote = '"' if text.count('"') % 2 else ""
    return (
        text + quote + "]" * (text.count("[") - text.count("]")) + "}" * (text.count("{") - text.count("}"))
    )


def _kept(text: str) -> str | None:
    """The complete elements of the list of results or claims, closed; None if there are none."""
    field = _FIELD.search(text)
    if field is None:
        return None
    depth, inside, end = 1, False, field.end()
    for mark in _MARKS.finditer(text, field.end()):
        sign = mark[0]
        if sign == '"':
            inside = not inside
        elif inside or sign.startswith("\\"):
            continue
        elif sign in "{[":
            depth += 1
        else:
            depth -= 1
            if sign == "}" and depth == 1:
                following = re.compile(r"[ \t\n\r]*").match(text, mark.end())
                place = following.end() if following else mark.end()
                if text[place : place + 1] in (",", "]"):
                    end = place + (text[place] == ",")
            if depth == 0:
                break
    if end == field.end():
        return None
    kept = text[:end].rstrip()
    if not kept.endswith("]"):
        kept = kept.removesuffix(",") + "]"
    return kept if kept.endswith("}") else kept + "}"


def _results(text: str) -> Any:
    found = json_in(text)
    if not isinstance(found, dict) or "results" not in found:
        raise UnreadableReply("no results in the reply")
    return found["results"]


def _by_id(results: Any, count: int) -> list[dict[str, Any] | None]:
    """The first result of every id from 1 to `count`, None for an id without one. Raises UnreadableReply."""
    if not isinstance(results, list | dict | str):
        raise UnreadableReply("results: not a list")
    found: dict[object, dict[str, Any]] = {}
    broken = False
    for one in results:
        broken = broken or not isinstance(one, dict)
        if isinstance(one, dict) and not broken and isinstance(one.get("id"), int | float):
            found.setdefault(one["id"], one)
    listed = [found.get(number) for number in range(1, count + 1)]
    if broken and None in listed:
        raise UnreadableReply("results: not a list of objects")
    return listed


def recalled_in(text: str, count: int) -> tuple[float | None, ...]:
    """How far each of `count` insights is recalled: 1, 0.5 or 0; None for one that the reply leaves out.

    Other numbers are rounded, from 0.75 up to 1 and from 0.25 up to 0.5. Raises UnreadableReply.
    """
    found: list[float | None] = []
    for one in _by_id(_results(text), count):
        score = 0.0 if one is None else one.get("score", 0.0)
        if not isinstance(score, int | float):
            raise UnreadableReply("score: not a number")
        found.append(None if one is None else 1.0 if score >= 0.75 else 0.5 if score >= 0.25 else 0.0)
    return tuple(found)


def satisfied_in(text: str, count: int) -> tuple[bool | None, ...]:
    """Whether each of `count` requirements is satisfied; None for one that the reply leaves out.

    What is not empty counts as true. Raises UnreadableReply.
    """
    return tuple(
        None if one is None else bool(one.get("satisfied", False)) for one in _by_id(_results(text), count)
    )


class Depth(msgspec.Struct, frozen=True):
    """A depth from 0 to 1; the code scores 0 where the score it finds is not a number: then `told` is False."""

    value: float
    told: bool


def depth_in(text: str) -> Depth:
    """The depth in a reply that is JSON with the evaluation as its `text`: nothing else is read.

    In the evaluation, the score is that of its block, of the block without a justification, or the first number behind
    the block's name in one line. Raises UnreadableReply.
    """
    found = json_in(text)
    said = found.get("text", "") if isinstance(found, dict) else ""
    if not isinstance(said, str):
        raise UnreadableReply("text: not a text")
    block = _block(said)
    if block is not None:
        return _depth(block) or Depth(0.0, False)
    for number in (_score(said), _first_number(said)):
        depth = None if number is None else _depth(number)
        if depth is not None:
            return depth
    raise UnreadableReply("no score in the reply")


def _block(text: str) -> str | None:
    """The score of a whole block."""
    for opened in _OPENED.finditer(text):
        if opened[1]:
            scored = _SCORED.search(text, opened.end())
            if scored is None or _JUSTIFIED.search(text, scored.end()) is None:
                return None
            return text[opened.end() : scored.start()]
    return None


def _score(text: str) -> str | None:
    """The first score within a block."""
    lower = text.lower()
    start = lower.find("<score>", max(lower.find(f"<{_TAG}>"), 0)) + len("<score>")
    end = lower.find("</score>", start)
    there = f"<{_TAG}>" in lower and start >= len("<score>") and end >= 0
    return text[start:end] if there and lower.find(f"</{_TAG}>", end) >= 0 else None


def _first_number(text: str) -> str | None:
    for line in text.split("\n"):
        place = line.lower().find(_TAG)
        number = _NUMBER.search(line, place + len(_TAG)) if place >= 0 else None
        if number is not None:
            return number[0]
    return None


def _depth(score: str) -> Depth | None:
    """The score from 1 to 10 as a share. Raises UnreadableReply for one without an end."""
    try:
        value = int(float(score.strip()))
    except ValueError:
        return None
    except OverflowError as error:
        raise UnreadableReply("score: infinite") from error
    return Depth(min(max(value, 1), 10) / 10, True)


class Claim(msgspec.Struct, frozen=True):
    """A statement of a report, and what it cites, in the standard form."""

    text: str
    citations: tuple[str, ...]


def claims_in(text: str) -> tuple[Claim, ...]:
    """The claims that a reply lists; none only if it says so. Raises UnreadableReply."""
    try:
        found = json_in(text)
    except UnreadableReply:
        found = None
    if found is None:
        found = next((one for one in _salvaged(text) if isinstance(one, dict) and one.get("claims")), {})
    if not isinstance(found, dict) or not isinstance(found.get("claims"), list):
        raise UnreadableReply("no list of claims in the reply")
    if len(found["claims"]) > MAX_CLAIMS:
        raise UnreadableReply(f"more than {MAX_CLAIMS:,} claims")
    claims = tuple(_claim(one) for one in found["claims"])
    if sum(len(one.citations) for one in claims) > MAX_CITATIONS:
        raise UnreadableReply(f"more than {MAX_CITATIONS:,} citations")
    return claims


def _claim(found: Any) -> Claim:
    if not isinstance(found, dict):
        raise UnreadableReply("a claim that is not an object")
    text, citations = found.get("claim_text", ""), found.get("citations", []) or []
    if not isinstance(text, str) or not isinstance(citations, list | str | dict):
        raise UnreadableReply("a claim of another shape")
    if not all(isinstance(one, str) for one in citations):
        raise UnreadableReply("a citation that is not a text")
    return Claim(text, tuple(citations))


def _salvaged(text: str) -> Iterator[Any]:
    """The code's reading of a reply with unreadable JSON: a Python literal, or JSON closed in two more ways."""
    cleaned = _ANY_FENCE.sub("", _JSON_FENCE.sub("", text))
    found = cleaned[cleaned.find("{") :] if "{" in cleaned else ""
    try:
        yield _literal(found)
    except (ValueError, SyntaxError):
        pass
    except (MemoryError, RecursionError, TypeError):
        return
    braces, brackets = found.count("{") - found.count("}"), found.count("[") - found.count("]")
    if braces <= 0 and brackets <= 0:
        return
    whole = [match.end() for match in _COMPLETE.finditer(found)]
    quote = '"' if found.count('"') % 2 else ""
    closed = f"{found}{quote}{']' * brackets}{'}' * braces}"
    for candidate in [*(f"{found[: end - 1]}]}}" for end in whole[-1:]), closed]:
        try:
            yield json.loads(candidate)
        except json.JSONDecodeError:
            continue
        except (ValueError, RecursionError):
            return


def _literal(text: str) -> Any:
    """A Python literal. Raises ValueError, SyntaxError, TypeError, MemoryError and RecursionError."""
    if len(text) > _MAX_LITERAL:
        raise ValueError("too long for a literal")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of unknown escapes
        return ast.literal_eval(text)


def supported_in(text: str, count: int) -> tuple[bool | None, ...]:
    """Whether each of `count` claims is supported; None for what the code takes as unsupported because of the reply.

    What is not empty counts as true, and of several verdicts on a claim the last. Raises UnreadableReply for an
    explanation that is not a text, over which the code stumbles.
    """
    try:
        found = {one.get("id"): one for one in _verdicts(text)}
    except (AttributeError, TypeError):  # not objects, or ids that cannot be looked up
        found = {}
    listed = [found.get(number) for number in range(1, count + 1)]
    if not all(one is None or isinstance(one.get("explanation", ""), str | list) for one in listed):
        raise UnreadableReply("explanation: not a text")
    return tuple(None if one is None or "supported" not in one else bool(one["supported"]) for one in listed)


def _verdicts(text: str) -> Any:
    """The results between the first brace and the last; none if they cannot be read. Raises AttributeError."""
    cleaned = _ANY_FENCE.sub("", _JSON_FENCE.sub("", text))
    start, end = cleaned.find("{"), cleaned.rfind("}") + 1
    if start < 0 or end <= start:
        return []
    return _object(cleaned[start:end]).get("results", [])


def _object(text: str) -> Any:
    """JSON, a Python literal, or JSON with as many closing marks as it lacks; empty if it is none of these."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        pass
    except (ValueError, RecursionError):
        return {}
    try:
        return _literal(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        ends = "]" * (text.count("[") - text.count("]")) + "}" * (text.count("{") - text.count("}"))
    try:
        return json.loads(text + ends)
    except (ValueError, RecursionError):
        return {}
