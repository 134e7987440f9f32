"""What kind of document a body is: by its media type, or by its first bytes if the type says nothing."""

from typing import Literal

Kind = Literal["html", "pdf", "xml", "text"]

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_PDF = frozenset({"application/pdf", "application/x-pdf"})
_XML = frozenset({"text/xml", "application/xml"})
_TEXT = frozenset({"application/json", "application/javascript", "application/x-ndjson", "application/yaml"})
# Media types that servers give when they do not know.
_UNSAID = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/download"})


def media_type(content_type: str) -> str:
    """The type of a Content-Type header in lower case without its parameters; "" if it has none."""
    essence = content_type.partition(";")[0].strip().lower()
    return essence[:100] if "/" in essence and essence.isascii() else ""


def may_be_read(content_type: str) -> bool:
    """Whether a body of this type is worth downloading: its kind is known, or only its bytes can tell."""
    media = media_type(content_type)
    return media in _UNSAID or _kind_said(media) is not None


def kind_of(content_type: str, body: bytes) -> Kind | None:
    """How to read `body`, or None if we cannot. The PDF signature outweighs what the server says."""
    start = body[:1024].lstrip()
    if start.startswith(b"%PDF-"):
        return "pdf"
    media = media_type(content_type)
    if media not in _UNSAID:
        return _kind_said(media)
    lowered = start.lower()
    if lowered.startswith((b"<!doctype html", b"<html", b"\xef\xbb\xbf<!doctype html", b"\xef\xbb\xbf<html")):
        return "html"
    if lowered.startswith(b"<?xml"):
        return "xml"
    return "text" if _is_utf8_text(body) else None


def _kind_said(media: str) -> Kind | None:
    if media in _HTML:
        return "html"
    if media in _PDF:
        return "pdf"
    if media in _XML or media.endswith("+xml"):
        return None if media.startswith("image/") else "xml"
    if media.startswith("text/") or media in _TEXT or media.endswith("+json"):
        return "text"
    return None


def _is_utf8_text(body: bytes) -> bool:
    if b"\0" in body:
        return False
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
