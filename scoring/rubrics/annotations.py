"""Citations that a system hands over apart from its text, put into the text before it is judged (Rigorous Bench)."""

from collections.abc import Sequence

from adjudge.scoring.contract.case import Citation
from adjudge.scoring.rubrics.trusted_links import cited_urls
from adjudge.scoring.text.references import MAX_REFERENCES, url_key
from adjudge.scoring.text.sentences import tidy

__all__ = ["annotated"]

MAX_TITLE = 200


def annotated(text: str, handed: tuple[Citation, ...]) -> str:
    """`text` with those of the citations in `handed` that it does not show itself.

    One with a position stands there, as a link; the others, each URL once, in a list at the end, under their markers.
    """
    shown = {url_key(url) for url in cited_urls(text)} if handed else set()
    missing = [one for one in handed if one.url.strip() and url_key(one.url) not in shown][:MAX_REFERENCES]
    placed = sorted((one for one in missing if one.position is not None), key=_position)
    listed = {url_key(one.url): one for one in reversed(missing) if one.position is None}
    return _linked(text, placed) + _list(list(reversed(listed.values())))


def _position(citation: Citation) -> int:
    return citation.position or 0


def _linked(text: str, placed: Sequence[Citation]) -> str:
    parts, before = [], 0
    for one in placed:
        parts += [text[before : _position(one)], f" [{_title(one)}]({_address(one)})"]
        before = max(before, _position(one))
    return "".join([*parts, text[before:]])


def _list(listed: Sequence[Citation]) -> str:
    if not listed:
        return ""
    entries = [
        f"[{tidy(one.marker.strip('[]【】()')) or place}] {_address(one)} {_title(one)}"
        for place, one in enumerate(listed, 1)
    ]
    return "\n".join(["\n", "## References", "", *entries])


def _title(citation: Citation) -> str:
    """The title on one line; behind the URL in a list, because it may hold another."""
    return tidy(citation.title[:MAX_TITLE]).translate(str.maketrans("", "", "[]")) or "source"


def _address(citation: Citation) -> str:
    """The URL without white space: in a list, another line would be another source."""
    return "".join(citation.url.split())
