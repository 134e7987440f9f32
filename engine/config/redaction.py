"""What may leave this process: text without secrets, and text that a terminal shows as it is.

A secret is the value of an environment variable that is named like one, the credentials of an address, or a token of
an Authorization header. Lines, errors, pages and run.json all pass through `hidden`.
"""

import os
import re
from collections.abc import Iterator
from html import escape
from typing import Any
from urllib.parse import quote

import msgspec

__all__ = ["credentials", "hidden", "hidden_in", "keep_secret", "printable", "printable_json"]

MASK = "***"
_SHORTEST_SECRET = 6  # characters: a shorter one would be struck out of innocent words
_NAMED_SECRET = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CONNECTION_STRING)$", re.IGNORECASE)
_SECRET_FIELD = (
    r"(?:[a-z0-9]{0,20}[-_.]){0,3}"
    r"(?:key|apikey|token|secret|password|passwd|pwd|signature|sig|credential|credentials|auth|authorization)"
)
# What stands before the @ of an address, which a path may have left with one slash. A password may hold a slash; a
# port does not count as one.
_LOGIN = re.compile(
    r"(?P<lead>:/{1,2})[^\s/?#@:\"'<>]{0,500}:(?!\d{1,5}(?![^/?#\s\"'<>]))[^\s@\"'<>]{0,500}@"
    r"|(?P<web>https?:/{1,2})[^\s/?#@\"'<>]{1,500}@",
    re.IGNORECASE,
)
_FIELD = re.compile(rf"(?<=[?&;#])({_SECRET_FIELD})=[^\s&#;\"'<>]+", re.IGNORECASE)
_SCHEME = re.compile(r"\b(Bearer|Basic)\s+(?=\S{0,80}[\d._~+/=-])[^\s\"'<>,;]{6,}", re.IGNORECASE)
_HEADER = re.compile(
    r"\b((?:proxy-)?authorization|x-api-key|api-key)(\s{0,8}[\"']?\s{0,8}[:=]\s{0,8}[\"']?)"
    r"(?:(?:Bearer|Basic)\s{1,8})?[^\s\"'<>,;&]+",
    re.IGNORECASE,
)
# C0 except tab and line feed, DEL and C1; and what reorders the characters around it.
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_UNPRINTABLE = re.compile(f"[{_CONTROLS}]")
_named: set[str] = set()


def keep_secret(variable: str) -> None:
    """Hide the value of the environment variable `variable` too, however it is named."""
    _named.add(variable)


def hidden(text: str) -> str:
    """`text` with *** in place of every secret."""
    return _struck(text, tuple(_values()))


def hidden_in(value: Any) -> Any:
    """`value` as plain data, with every text in it hidden."""
    return _each(msgspec.to_builtins(value, str_keys=True), tuple(_values()))


def credentials(address: str) -> str | None:
    """The kind of credentials in `address`, a login or a value in its query; None if it contains neither."""
    if "://" not in address:
        return None
    if _LOGIN.search(address):
        return "a user or password"
    found = _FIELD.search(address)
    return None if found is None else f"the value of {found[1]}"


def printable(text: str) -> str:
    """`text` with a replacement character for everything that would steer a terminal or reorder what it shows."""
    return _UNPRINTABLE.sub("\ufffd", text)


def printable_json(value: object) -> str:
    """`value` as JSON, with secrets hidden; what would steer a terminal is escaped, which leaves the document equal."""
    text = msgspec.json.encode(hidden_in(value)).decode()
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _each(value: Any, secrets: tuple[str, ...]) -> Any:
    match value:
        case str():
            return _struck(value, secrets)
        case dict():
            return {key: _each(each, secrets) for key, each in value.items()}
        case list() | tuple():
            return [_each(each, secrets) for each in value]
    return value


def _struck(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, MASK)
    if "@" in text:
        text = _LOGIN.sub(lambda found: f"{found['lead'] or found['web']}{MASK}@", text)
    if "=" in text or ":" in text:
        text = _HEADER.sub(rf"\1\2{MASK}", _FIELD.sub(rf"\1={MASK}", text))
    return _SCHEME.sub(rf"\1 {MASK}", text)


def _values() -> Iterator[str]:
    """The secrets of the environment, in each spelling that text may have them in."""
    for name, value in os.environ.items():
        value = value.strip()
        if (name in _named or _NAMED_SECRET.search(name)) and len(value) >= _SHORTEST_SECRET:
            yield value
            as_json = msgspec.json.encode(value.encode("utf-8", "replace").decode()).decode()[1:-1]
            yield from {
                quote(value, safe=""),
                quote(value),
                as_json,
                as_json.replace("/", "\\/"),
                escape(value),
            }
