"""What may leave this process: data as they are, messages without secrets, and text that a terminal shows as it is.

A secret is known by where it stands. In a configuration it is the value of a key that is named like one, at any depth:
such keys are refused, as the values belong in environment variables that the configuration names. In an address it is
the login, or the value of a query's field that is named like one. Records, tables, pages and scores are never searched
for anything else, because an environment variable may well hold a word that they hold too.

Logs and errors are messages: a token of an Authorization header, what looks like a key of a known service, and the
value of a credential's variable are struck from them too, the last only if it is too long or too mixed for a word.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Any
from urllib.parse import quote

import msgspec

from adjudge.judges.judgment import looks_random

__all__ = [
    "credentials",
    "hidden",
    "keep_secret",
    "masked",
    "named_credentials",
    "printable",
    "printable_json",
    "without_logins",
]

MASK = "***"
_NAMED_SECRET = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CONNECTION_STRING)$", re.IGNORECASE)
_SECRET_FIELD = (
    r"(?:[a-z0-9]{0,20}[-_.]){0,3}"
    r"(?:key|apikey|token|secret|password|passwd|pwd|signature|sig|credential|credentials|auth|authorization)"
)
# Of a configuration's keys. `max_tokens`, `eos_token` and `prompt_cache_key` are none.
_CREDENTIAL = re.compile(
    r"(?:.*_)?(?:(?:api|access|secret|private|account|subscription|auth|encryption|signing|master|shared|client"
    r"|service|function|ocp_apim_subscription)_?key(?:_id)?|secret|password|passwd|pwd|passphrase|credentials?"
    r"|authorization|bearer|connection_string|cookie)|key|(?:.*_)?auth|signature"
    r"|(?:.*_)?(?:api|auth|access|session|security|bearer|refresh|secret|hf|github|gitlab|id|x)_?token|token"
)
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_A_LETTER = re.compile(r"[^a-z0-9]+")
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
# Keys as services make them: OpenAI, Anthropic and others, Hugging Face, GitHub, GitLab, Slack, AWS, Google, NVIDIA,
# Groq, xAI, Replicate, and JSON web tokens.
_KEY = re.compile(
    r"(?<![A-Za-z0-9_-])(?:sk-(?:[a-z]{2,6}-)?(?=[\w-]{0,200}\d)[\w-]{16,200}|hf_[A-Za-z]{30,40}|gh[pousr]_[A-Za-z0-9]{30,255}"
    r"|github_pat_\w{30,255}|glpat-[\w-]{20,64}|xox[abeprs]-[\w-]{10,250}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{35}"
    r"|nvapi-[\w-]{30,100}|gsk_[A-Za-z0-9]{30,100}|xai-[A-Za-z0-9]{30,120}|r8_[A-Za-z0-9]{30,60}"
    r"|eyJ[\w-]{10,2000}\.eyJ[\w-]{10,4000}\.[\w-]{10,2000})(?![A-Za-z0-9_-])"
)
# C0 except tab and line feed, DEL and C1; and what reorders the characters around it.
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_UNPRINTABLE = re.compile(f"[{_CONTROLS}]")
_LONG = 16  # characters; a shorter pass phrase may be a word
_named: set[str] = set()


def keep_secret(variable: str) -> None:
    """Hide the value of the environment variable `variable` too, however it is named."""
    _named.add(variable)


def hidden(text: str) -> str:
    """The message `text`, of a log or an error, with *** in place of every secret."""
    for secret in _values():
        if looks_random(secret):
            text = text.replace(secret, MASK)
        elif secret in text:
            text = re.sub(rf"(?<![\w-]){re.escape(secret)}(?![\w-])", MASK, text)
    text = without_logins(text)
    if "=" in text or ":" in text:
        text = _HEADER.sub(rf"\1\2{MASK}", text)
    return _KEY.sub(MASK, _SCHEME.sub(rf"\1 {MASK}", text))


def masked(value: Any) -> Any:
    """A configuration as plain data, with *** in place of what is called a credential, and without logins."""
    match value:
        case str():
            return without_logins(value) if "://" in value else value
        case Mapping():
            return {
                name: MASK if _is_credential(name) and isinstance(each, str) and each else masked(each)
                for name, each in value.items()
            }
        case list() | tuple():
            return [masked(each) for each in value]
    return value


def named_credentials(value: Any, at: str) -> Iterator[str]:
    """The places in plain data, from `at` on, that are called a credential or that hold what looks like one."""
    match value:
        case str() if _KEY.search(value) or _SCHEME.search(value):
            yield at
        case Mapping():
            for name, each in value.items():
                if _is_credential(name):
                    yield f"{at}.{name}"
                else:
                    yield from named_credentials(each, f"{at}.{name}")
        case list() | tuple():
            for number, each in enumerate(value):
                yield from named_credentials(each, f"{at}[{number}]")


def _is_credential(name: object) -> bool:
    words = _NOT_A_LETTER.sub("_", _CAPITAL.sub("_", str(name)[:200]).lower()).strip("_")
    return _CREDENTIAL.fullmatch(words) is not None


def credentials(address: str) -> str | None:
    """The kind of credentials in `address`, a login or a value in its query; None if it contains neither."""
    if "://" not in address:
        return None
    if _LOGIN.search(address):
        return "a user or password"
    found = _FIELD.search(address)
    return None if found is None else f"the value of {found[1]}"


def without_logins(text: str) -> str:
    """`text` with *** in place of the login of each address, and of its query's secret values."""
    if "@" in text:
        text = _LOGIN.sub(lambda found: f"{found['lead'] or found['web']}{MASK}@", text)
    return _FIELD.sub(rf"\1={MASK}", text) if "=" in text else text


def printable(text: str) -> str:
    """`text` with a replacement character for everything that would steer a terminal or reorder what it shows."""
    return _UNPRINTABLE.sub("\ufffd", text)


def printable_json(value: object, enc_hook: Callable[[Any], Any] | None = None) -> str:
    """`value` as JSON; what would steer a terminal is escaped, which leaves the document equal."""
    text = msgspec.json.encode(value, enc_hook=enc_hook).decode()
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _values() -> Iterator[str]:
    """The credentials of the environment that are no words, in each spelling that text may have them in."""
    for name, value in os.environ.items():
        value = value.strip()
        if (name in _named or _NAMED_SECRET.search(name)) and (looks_random(value) or len(value) >= _LONG):
            yield value
            as_json = msgspec.json.encode(value.encode("utf-8", "replace").decode()).decode()[1:-1]
            yield from {
                quote(value, safe=""),
                quote(value),
                as_json,
                as_json.replace("/", "\\/"),
                escape(value),
            }
