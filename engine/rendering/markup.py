"""HTML built from elements: text is escaped unless it is Markup already, so untrusted text stays text."""

from html import escape

__all__ = ["Markup", "join", "tag"]

_VOID = frozenset({"input", "br", "hr", "meta", "link"})


class Markup(str):
    """HTML, safe as it is. Make it with `tag` and `join`, or from a constant."""

    __slots__ = ()

    def __html__(self) -> str:
        """The same, for templates."""
        return self


def tag(name: str, *children: str | None, **attributes: str | int | float | bool | None) -> Markup:
    """The element `name`. In attribute names a trailing underscore is dropped and other underscores become hyphens.

    None and False leave an attribute out, True writes it without a value. A child that is None is left out.
    """
    shown = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{shown}>")
    return Markup(f"<{name}{shown}>{join(*children)}</{name}>")


def join(*children: str | None) -> Markup:
    """The children one after the other, escaped where they are plain text."""
    return Markup("".join(_safe(child) for child in children if child is not None))


def _safe(text: str) -> str:
    # Lone surrogates have no encoding, so they could not be written or sent.
    return text if isinstance(text, Markup) else escape(text).encode("utf-8", "replace").decode()


def _attribute(key: str, value: str | int | float | bool | None) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{_safe(str(value))}"'
