"""Text from outside, made fit to be stored and shown: what every string of a reply or an error passes through."""

import re
from collections.abc import Iterable

__all__ = ["Redaction", "encodable", "shown_url", "storable"]

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


class Redaction:
    """Removes an API key, and what stands in a URL's query, from text.

    Anything of fewer than eight characters protects nothing and may be a common word (`EMPTY`): such a key is removed
    from errors only.
    """

    def __init__(self, key: str, queried: Iterable[str] = ()) -> None:
        # The longest first, so that one that begins another leaves nothing of it.
        secrets = sorted({key, *queried} - {""}, key=len, reverse=True)
        self._long = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]
        named = [secret for secret in secrets if secret in self._long or secret == key]
        self._longest = max(map(len, named), default=0) * _SPELLED
        self._spelled = re.compile("|".join(map(_spellings, named)) or "(?!)", re.IGNORECASE)

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
        for secret in self._long:
            content = content.replace(secret.encode(), b"***")
        return content


def _spellings(secret: str) -> str:
    """A pattern of `secret` as it is, behind backslashes, and in the escapes of JSON and of URLs."""
    return "".join(
        rf"(?:\\{{0,3}}{re.escape(char)}|\\{{1,3}}u{ord(char):04x}|%{ord(char):02x})" for char in secret
    )
