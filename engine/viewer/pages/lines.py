"""Lines of evidence as pages show them: statements with a verdict, criteria with points, in words and with a sign."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from adjudge.engine.rendering.numbers import number
from adjudge.engine.viewer.data.people import Said
from adjudge.engine.viewer.data.verdicts import KINDS
from adjudge.scoring.contract.outcomes import Points, kind_of, points_of
from adjudge.scoring.contract.protocol import ExplainedCriterion
from adjudge.scoring.contract.scorecard import Evidence, Scorecard

__all__ = ["Line", "line_of", "lines_of"]

MAX_WHAT = 400


_STATEMENTS = frozenset({"supported", "unsupported", "unknown", "unreachable"})
_GROUP = re.compile(r"([a-z][a-z_ ]{2,39}): ")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """Line `n` of a scorecard's evidence, counted from 1.

    `kind` is one of KINDS or empty, `group` what several criteria belong to (a dimension, a tag), `weight` the share of
    the whole in percent, `host` the source's. `looked_for` is what to find in the report, empty if nothing is. `people`
    is what people said of it.
    """

    n: int
    what: str
    said: str
    kind: str
    sign: str
    group: str = ""
    reason: str = ""
    note: str = ""
    quote: str = ""
    url: str = ""
    host: str = ""
    judgment: str = ""
    points: Points | None = None
    explanation: str = ""
    weight: str = ""
    looked_for: str = ""
    people: tuple[Said, ...] = ()

    @property
    def clipped(self) -> str:
        """What was judged, its beginning only where it is long."""
        return self.what if len(self.what) <= MAX_WHAT else f"{self.what[:MAX_WHAT]}…"

    @property
    def is_statement(self) -> bool:
        """Whether it is a statement of the report, not a criterion."""
        return bool(self.looked_for) and not self.quote

    @property
    def by_people(self) -> str:
        """Whether people "agree" with the judge, or at least one "differs"; empty if nobody said anything."""
        if not self.people:
            return ""
        return "agree" if all(one.agrees for one in self.people) else "differ"

    @property
    def label(self) -> str:
        """What a screen reader says of its sign and number."""
        return f"{self.n}: {self.said or 'no outcome'}"


def lines_of(
    card: Scorecard,
    explained: Iterable[ExplainedCriterion] = (),
    reasons: Mapping[int, str] | None = None,
    people: Mapping[int, tuple[Said, ...]] | None = None,
) -> list[Line]:
    """The lines of `card`, with what is known of its criteria.

    `reasons` are the judge's by the line's number, `people` what people said of it.
    """
    return _lines(range(1, len(card.evidence) + 1), card, explained, reasons or {}, people or {})


def line_of(
    n: int,
    card: Scorecard,
    explained: Iterable[ExplainedCriterion] = (),
    reasons: Mapping[int, str] | None = None,
    people: Mapping[int, tuple[Said, ...]] | None = None,
) -> Line:
    """The `n`-th of `lines_of`."""
    return _lines((n,), card, explained, reasons or {}, people or {})[0]


def _lines(
    numbers: Iterable[int],
    card: Scorecard,
    explained: Iterable[ExplainedCriterion],
    reasons: Mapping[int, str],
    people: Mapping[int, tuple[Said, ...]],
) -> list[Line]:
    known = {one.what: one for one in explained}
    stated = any(kind_of(line) in _STATEMENTS for line in card.evidence)
    groups = _groups(card.evidence)
    lines = []
    for n in numbers:
        line = card.evidence[n - 1]
        shown = _line(n, line, known.get(line.what), groups, stated, reasons.get(n, ""))
        lines.append(msgspec.structs.replace(shown, people=people[n]) if n in people else shown)
    return lines


def _line(
    n: int, line: Evidence, known: ExplainedCriterion | None, groups: set[str], stated: bool, reason: str
) -> Line:
    kind = kind_of(line)
    begun = _GROUP.match(line.what)
    group = begun[1] if begun and begun[1] in groups else ""
    what = line.what[len(group) + 2 :] if group else line.what
    statement = kind in _STATEMENTS or (kind == "none" and bool(stated or line.url))
    extra: dict[str, Any] = {}
    if known is not None:
        weight = "" if known.weight is None else f"{number(known.weight, 100)} %"
        extra = {"explanation": known.explanation, "weight": weight}
        group = group or ", ".join(known.tags)
    return Line(
        n=n,
        what=what,
        said=_said(line),
        kind=kind,
        sign=KINDS[kind].sign if kind else "",
        group=group.replace("_", " "),
        reason=line.reason,
        note=line.note or reason,
        quote=line.quote,
        url=line.url,
        host=_host(line.url),
        judgment=line.judgment,
        points=points_of(line.outcome),
        looked_for=line.quote or (what if statement else ""),
        **extra,
    )


def _said(line: Evidence) -> str:
    """The outcome in words; of what can only cost points, whether it did."""
    points = points_of(line.outcome)
    if points is not None and not points.most:
        return f"{-points.given:g} points taken away" if points.given else "no points taken away"
    return line.outcome or line.reason


def _groups(lines: Sequence[Evidence]) -> set[str]:
    """The words before a colon with which several lines begin."""
    begun = Counter(found[1] for line in lines if (found := _GROUP.match(line.what)))
    return {name for name, count in begun.items() if count > 1}


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.") or url[:100]
    except ValueError:
        return url[:100]
