"""Where each page is in an exported folder: the names of its files, and the addresses that lead to them."""

import hashlib
import re
from collections.abc import Mapping

from adjudge.engine.records.record import RunRecord
from adjudge.engine.viewer.data.query import with_fields

__all__ = ["LEFT_OUT", "Names"]

LEFT_OUT = "left-out.html"
_ALONE = {"": "index.html", "./": "index.html", "tasks": "tasks.html", "leaderboard": "leaderboard.html"}
_ALONE |= {"search": "search.html"}
# What has a file of its own, and the fields that say which; the pages about it are told apart by the other fields.
_FILES = {
    "system": ("system", ("system",)),
    "task": ("task", ("task",)),
    "report": ("report", ("system", "task")),
    "evidence": ("report", ("system", "task")),
}
_PAGES = {"page": ("page", ("url",))}
_OTHER = re.compile(r"[^a-z0-9]+")
_READABLE = 40


class Names:
    """The address of every page of the run in `record`; with `sources`, pages that were read are among them."""

    def __init__(self, record: RunRecord, sources: bool) -> None:
        self._files = _FILES | (_PAGES if sources else {})
        self._heads = {
            protocol: next((metric.name for metric in metrics if metric.headline), "")
            for protocol, metrics in record.metrics.items()
        }

    def __call__(self, path: str, fields: Mapping[str, str]) -> str:
        """The address of the page that `address` would have at `path` with `fields`."""
        rest = {name: value for name, value in fields.items() if name not in ("page", "after")}
        if path in _ALONE:
            return with_fields(_ALONE[path], rest)
        if path not in self._files:
            return LEFT_OUT
        kind, own = self._files[path]
        name = file_name(kind, [fields.get(field, "") for field in own])
        left = {key: value for key, value in rest.items() if key not in own}
        return with_fields(name, self._metric(left) if kind == "system" else left)

    def _metric(self, fields: dict[str, str]) -> dict[str, str]:
        """A metric as a form names it, PROTOCOL.METRIC."""
        protocol = fields.pop("protocol", "")
        if protocol:
            fields["metric"] = f"{protocol}.{fields.get('metric') or self._heads.get(protocol, '')}"
        return fields


def file_name(kind: str, parts: list[str]) -> str:
    """A name that no other `parts` have, in letters, figures and hyphens, of one case and at most 100 characters."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        whole = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d " % len(whole) + whole)
    shown = [_OTHER.sub("-", part[:_READABLE].lower()).strip("-") for part in parts]
    return "-".join([kind, *filter(None, shown), digest.hexdigest()]) + ".html"
