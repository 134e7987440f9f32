"""What a system's figures rest on, where that changes them or a reader would want to know: notes and badges.

The signs themselves are counted with the scores (`scoring/text/integrity.py`, FACT, RACE), those of a report by itself
once for every protocol (`engine/runs/tallies.py`); here they are held against the figures. Only what is beyond these
limits is said:

- citations: `c_acc` differs by more than 2 points from `c_acc_distinct`, in which every page counts once, whatever
  addresses lead to it, and a page that holds little but the report's own sentences supports nothing;
- marks: more than a tenth of a system's citation marks and addresses leads to no pair, or the systems differ in it by
  more than a tenth;
- reports: a report addresses the judge, hides text from its readers, has at least half of its wording from the
  reference report, or from its task and criteria, or says at least a quarter of its text again.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.runs.board import Sign
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.tallies import SIGN_LIMITS, Signed, added_signs
from adjudge.judges.plural import plural
from adjudge.scoring.text.accounted import LOUD

__all__ = ["Integrity", "integrity_of"]

POINTS = 0.02
_REPORT = ["system", "task_id", "sample", "repeat"]
_LIMITS = SIGN_LIMITS | {"reference_runs": 0.5}
_SIGNS = {
    "injections": ("address the judge", "address the judge"),
    "hidden": ("hide text", "hide text from their readers"),
    "reference_runs": ("copy the reference", "have at least half of their wording from the reference report"),
    "criteria_echo": (
        "echo the criteria",
        "have at least half of their wording from their task and its criteria",
    ),
    "repeated": ("repeat themselves", "say at least a quarter of their text more than once"),
}
"""How a sign of a report is told: in a few words, and in a sentence."""

_Of = tuple[str, str]
_NAMED = 3  # systems, in a note on many
"""A protocol and a system."""


class Integrity(msgspec.Struct, frozen=True):
    """The signs by protocol and system, and the notes: what the signs say, and what is said of all systems."""

    signs: dict[_Of, tuple[Sign, ...]]
    notes: tuple[str, ...]


def integrity_of(scores: pa.Table, records: Sequence[RunRecord] = ()) -> Integrity:
    """What is beyond the limits in the score rows of reports that were judged by themselves, the runs in `records`."""
    shares = _lost(scores)
    lost = list(_on_lost(shares))
    found = [*_on_citations(scores), *lost]
    counted = added_signs(record.signs for record in records)
    for metric in _SIGNS:
        found += _on_reports(_counts(scores, counted, metric), metric)
    signs: defaultdict[_Of, list[Sign]] = defaultdict(list)
    for of, sign in found:
        signs[of].append(sign)
    notes = [sign.said for _, sign in found]
    if len(lost) > _NAMED:
        alone = {sign.said for _, sign in lost}
        notes = [*(note for note in notes if note not in alone), _lost_of_many(shares)]
    said = dict.fromkeys(notes)  # of a report under several protocols, once
    return Integrity(
        {of: tuple(own) for of, own in signs.items()}, (*said, *_uncited(scores, shares), *_uneven(shares))
    )


def _on_citations(scores: pa.Table) -> Iterator[tuple[_Of, Sign]]:
    names = ("c_acc", "c_acc_distinct", "addresses", "distinct_pages", "echoes")
    found = _values(scores, "fact", names[0])
    for name in names[1:]:
        found = found.join(_values(scores, "fact", name), _REPORT, join_type="inner")
    wanted: list[tuple[str, str]] = [(name, "mean" if name in names[:2] else "sum") for name in names]
    for row in _by_system(found, wanted):
        stated, distinct = row["c_acc_mean"], row["c_acc_distinct_mean"]
        if abs(stated - distinct) <= POINTS + 1e-9:
            continue
        addresses, pages, echoes = (int(row[f"{name}_sum"]) for name in names[2:])
        why = [
            f"{plural(addresses, 'cited address leads', 'cited addresses lead')} to {plural(pages, 'page')}"
        ]
        if echoes:
            why.append(f"{plural(echoes, 'page repeats', 'pages repeat')} the report's own sentences")
        said = (
            f"fact c_acc of {row['system']}: {100 * stated:.2f}, but {100 * distinct:.2f} if every page counts once "
            f"and none supports what it merely repeats ({'; '.join(why)})"
        )
        yield ("fact", row["system"]), Sign(f"{100 * distinct:.2f} by distinct pages", said)


def _lost(scores: pa.Table) -> dict[str, tuple[float, dict[str, Any]]]:
    """By system, the share of its citation marks and addresses that lead to no pair, and both counts."""
    found = _values(scores, "fact", "lost").join(_values(scores, "fact", "marks"), _REPORT, join_type="inner")
    return {
        row["system"]: (row["lost_sum"] / row["marks_sum"] if row["marks_sum"] else 0.0, row)
        for row in _by_system(found, [("lost", "sum"), ("marks", "sum")])
    }


def _on_lost(shares: dict[str, tuple[float, dict[str, Any]]]) -> Iterator[tuple[_Of, Sign]]:
    for system, (share, row) in shares.items():
        if share > LOUD:
            said = (
                f"fact: {share:.0%} of the citation marks and addresses of {system} ({row['lost_sum']:.0f} of "
                f"{row['marks_sum']:.0f}) lead to no pair of a statement and a page: its figures are about the others"
            )
            yield ("fact", system), Sign(f"{share:.0%} of marks lost", said)


def _lost_of_many(shares: dict[str, tuple[float, dict[str, Any]]]) -> str:
    """One note for all systems whose marks are lost, those that lose most first."""
    lost = sorted(
        ((share, name) for name, (share, _) in shares.items() if share > LOUD), key=lambda one: -one[0]
    )
    named = ", ".join(f"{name} ({share:.0%})" for share, name in lost[:_NAMED])
    return (
        f"fact: more than {LOUD:.0%} of the citation marks and addresses of {len(lost)} systems lead to no pair of a "
        f"statement and a page, and their figures are about the others: {named} and {len(lost) - _NAMED} more"
    )


def _uncited(scores: pa.Table, shares: dict[str, tuple[float, dict[str, Any]]]) -> Iterator[str]:
    marks = sum(row["marks_sum"] for _, row in shares.values())
    if shares and not marks and not any(_values(scores, "fact", "pairs")["pairs"].to_pylist()):
        yield "fact: no report cites a source, by a mark or an address: there is nothing to score"


def _uneven(shares: dict[str, tuple[float, dict[str, Any]]]) -> Iterator[str]:
    every = [share for share, _ in shares.values()]
    if every and max(every) - min(every) > LOUD:
        yield "fact: systems are not comparable: of some, far more marks and addresses lead to no pair than of others"


def _counts(
    scores: pa.Table, counted: Mapping[_Of, Signed], metric: str
) -> dict[tuple[str, int, int], list[str]]:
    """The protocols under which `reports` of a system were looked at, and so many are beyond the limit of a sign.

    RACE's own rows tell of the reference, and of runs in which reports were not looked at by themselves.
    """
    found: defaultdict[tuple[str, int, int], list[str]] = defaultdict(list)
    if metric in SIGN_LIMITS:
        for (protocol, system), one in sorted(counted.items()):
            found[system, one.beyond.get(metric, 0), one.reports].append(protocol)
    rows = _values(scores, "race", metric)
    beyond = pc.cast(pc.greater_equal(rows[metric], _LIMITS[metric]), pa.int64())
    for row in _by_system(rows.append_column("beyond", beyond), [("beyond", "sum"), ("beyond", "count")]):
        if metric not in SIGN_LIMITS or ("race", row["system"]) not in counted:
            found[row["system"], row["beyond_sum"], row["beyond_count"]].append("race")
    return found


def _on_reports(
    counts: Mapping[tuple[str, int, int], Sequence[str]], metric: str
) -> Iterator[tuple[_Of, Sign]]:
    words, said = _SIGNS[metric]
    for (system, count, reports), protocols in counts.items():
        if count:
            of = f"{count} of {plural(reports, 'report')}"
            sign = Sign(f"{of} {words}", f"{', '.join(protocols)}: {of} of {system} {said}")
            yield from (((protocol, system), sign) for protocol in protocols)


def _values(scores: pa.Table, protocol: str, metric: str) -> pa.Table:
    """The values of a metric by report, under its name; without reports that have none."""
    plain = {name: pc.cast(scores[name], pa.string()) for name in ("protocol", "metric")}
    chosen = pc.and_(pc.equal(plain["protocol"], protocol), pc.equal(plain["metric"], metric))
    rows = scores.filter(pc.and_(chosen, pc.is_valid(scores["value"]))).select([*_REPORT, "value"])
    for name in ("system", "task_id"):
        rows = rows.set_column(rows.column_names.index(name), name, pc.cast(rows[name], pa.string()))
    return rows.rename_columns([*_REPORT, metric])


def _by_system(found: pa.Table, wanted: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    if not len(found):
        return []
    rows: list[dict[str, Any]] = (
        found.group_by("system").aggregate(list(wanted)).sort_by("system").to_pylist()
    )
    return rows
