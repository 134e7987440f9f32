"""What a judge took for a report's claims, against the claims that people find in it (DR3-Eval's check of its judge).

Two claims are the same if they share most of their words, whatever their order; each is paired once, as many as
possible. A claim in other words altogether is not found: precision and recall are then too low, never too high.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from adjudge.engine.errors import UsageError
from adjudge.engine.runs.items import read_rows
from adjudge.engine.runs.run import Run
from adjudge.judges.plural import listed
from adjudge.scoring.answers.parts import Overlap
from adjudge.scoring.contract.scorecard import Scorecard
from adjudge.scoring.kernels.matching import match_claims as kernel
from adjudge.scoring.text.integrity import prose_words

__all__ = ["SHARED", "Extraction", "with_claims"]

SHARED = 0.6
"""The share of the words of the longer of two claims that both have, from which on they are the same."""

_KINDS = ("backed", "backing")
_MOST = 2_000
"""The most claims of one report that are compared."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that people find in a report."""

    task_id: str
    system: str
    claim: str
    sample: int = 0


class Extraction(msgspec.Struct, frozen=True, kw_only=True):
    """Claims of one protocol in the reports of a `system` (""; all) for which people wrote some.

    `precision` is the share of the `n_extracted` claims that are among people's, `recall` that of the `n_people` claims
    that were extracted, both over all reports together; None without any. `left_out` names reports that the run lacks.
    """

    protocol: str
    system: str
    precision: float | None
    recall: float | None
    f1: float | None
    n_extracted: int
    n_people: int
    n_same: int
    n_reports: int
    left_out: str = ""


def with_claims(run: str | Path, file: str | Path) -> list[Extraction]:
    """Precision and recall of the claims that were extracted from reports, against those in `file`.

    Raises UsageError for a file that cannot be read, and if no claim is of a report of the run; StoreError.
    """
    wanted: defaultdict[tuple[str, str, int], list[str]] = defaultdict(list)
    for row in read_rows(Path(file), Claim, "claim"):
        wanted[row.system, row.task_id, row.sample].append(row.claim)
    found: defaultdict[tuple[str, str], list[tuple[int, int, int]]] = defaultdict(list)
    seen = set()
    for card, claims in _extracted(Run.open(run)):
        report = card.system, card.task_id, card.sample
        if report in wanted:
            seen.add(report)
            people = list(dict.fromkeys(wanted[report]))
            counts = len(claims), len(people), same_claims(claims, people)
            for system in ("", card.system):
                found[card.protocol, system].append(counts)
    if not found:
        raise UsageError(f"claims: none in {file} comes from a report of this run; check task_id and system")
    absent = listed([f"{system} on task {task}" for system, task, _ in wanted.keys() - seen])
    return [_figures(*of, counts, absent) for of, counts in sorted(found.items())]


def same_claims(extracted: Sequence[str], people: Sequence[str]) -> int:
    """How many claims are among both, each paired once."""
    ours, theirs = ([{*prose_words(one)} for one in each[:_MOST]] for each in (extracted, people))
    same = np.array([[_same(one, other) for other in theirs] for one in ours], np.float64)
    pairs = kernel.ClaimPairs.from_matrices([same.reshape(len(ours), len(theirs))])
    return int((kernel.match_cardinality(pairs).matched >= 0).sum())


def _same(one: set[str], other: set[str]) -> bool:
    return len(one & other) >= SHARED * max(len(one), len(other), 1)


def _extracted(run: Run) -> Iterator[tuple[Scorecard, list[str]]]:
    """Every scorecard of a protocol that checks claims, with them, each once."""
    cards = list(run.labelled_cards())
    checking = {card.protocol for card, items in cards for item in items if item.labelled.kind.name in _KINDS}
    for card, items in cards:
        if card.protocol in checking:
            said = (_words(item.line.what) for item in items if item.labelled.kind.name in _KINDS)
            yield card, list(dict.fromkeys(said))


def _words(what: str) -> str:
    """The claim alone of a line that names its source too."""
    return what.removeprefix("claim: ").rpartition(" (citing ")[0] if what.startswith("claim: ") else what


def _figures(protocol: str, system: str, counts: Iterable[tuple[int, int, int]], left_out: str) -> Extraction:
    each = np.array([*counts])
    extracted, people, same = each.sum(axis=0).tolist()
    whole = Overlap.counted(same, extracted, people)
    return Extraction(
        protocol=protocol,
        system=system,
        precision=whole.precision if extracted else None,
        recall=whole.recall if people else None,
        f1=whole.f1 if extracted and people else None,
        n_extracted=extracted,
        n_people=people,
        n_same=same,
        n_reports=len(each),
        left_out=left_out,
    )
