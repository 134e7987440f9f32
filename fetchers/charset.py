"""From bytes to characters, whatever the server says about them."""

import codecs
import re

from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

__all__ = ["decode"]

_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_IN_HEADER = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.I | re.A)
_IN_BODY = re.compile(rb"<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.I)
# Encodings whose bytes also pass for UTF-8, so that only the declaration can tell them apart.
_ASCII_ALIKE = ("iso2022", "utf_16", "hz")


def decode(body: bytes, content_type: str) -> str:
    """The text of `body`; undecodable bytes become U+FFFD.

    In this order: byte order mark; UTF-8 if every byte fits it, since other encodings hardly ever do by
    chance; the header's charset; the document's own (first 4,096 bytes); what the bytes look like.
    """
    for mark, encoding in _BOMS:
        if body.startswith(mark):
            return body.decode(encoding, "replace")
    declared = _declared(body, content_type)
    if not any(encoding.startswith(_ASCII_ALIKE) for encoding in declared):
        declared.insert(0, "utf-8")
    for encoding in declared:
        try:
            return body.decode(encoding)
        except UnicodeError:
            continue
    return body.decode(_python_name(detect_encoding(body)) or "utf-8", "replace")


def _declared(body: bytes, content_type: str) -> list[str]:
    labels = [match[1] for match in [_IN_HEADER.search(content_type)] if match]
    labels += [match[1].decode() for match in [_IN_BODY.search(body[:4096])] if match]
    return [name for name in map(_python_name, labels) if name]


def _python_name(label: str | None) -> str | None:
    """Python's name for a label of the web, in which latin-1 means windows-1252; None if it is unknown."""
    mapped = map_encoding_to_html5(label, fallback_utf8=False) if label else None
    try:
        return codecs.lookup(mapped).name if mapped else None
    except LookupError:
        return None
