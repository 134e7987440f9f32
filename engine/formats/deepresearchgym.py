"""DeepResearchGym's results for key points (KPR, KPC), read and written.

A file for each system, `SYSTEM/evaluation_results_kpr_JUDGE.json`: an object with an entry for each query, by its id:

    {"labels": {"1": ["Supported", "why"], "2": ["Omitted", "why"]}, "support_rate": 50.0,
     "omitted_rate": 50.0, "contradicted_rate": 0.0}

The rates are per cent of the query's points. The published files write `ommitted_rate`; both spellings are read, and
entries that are written again are as they were.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from adjudge.engine.formats.dataset import UNREADABLE
from adjudge.engine.formats.recorded import Results, RunToWrite, folder_name, scorecard
from adjudge.engine.formats.rejected import Rejected
from adjudge.scoring.contract.case import Task
from adjudge.scoring.contract.scorecard import Evidence, Outcome, Scorecard
from adjudge.scoring.rubrics.keypoints import OUTCOMES, Made

PROTOCOL = "keypoints"
FILE = "evaluation_results_kpr"
_MADE: dict[str, Made] = {"Supported": "supported", "Omitted": "omitted", "Contradicted": "contradicted"}

Rate = Annotated[float, msgspec.Meta(ge=0, le=100)]


class Entry(msgspec.Struct, frozen=True):
    """A query's results: each point's label with its reason, and the rates in per cent."""

    labels: dict[str, tuple[Literal["Supported", "Omitted", "Contradicted"], str]]
    support_rate: Rate
    contradicted_rate: Rate
    omitted_rate: Rate | None = None
    ommitted_rate: Rate | None = None

    @property
    def values(self) -> dict[str, float]:
        """Our metrics."""
        omitted = self.ommitted_rate if self.omitted_rate is None else self.omitted_rate
        if omitted is None:
            omitted = 100 - self.support_rate - self.contradicted_rate
        rates = {
            "support": self.support_rate,
            "contradiction": self.contradicted_rate,
            "omission": omitted,
        }
        return {name: rate / 100 for name, rate in rates.items()}


def read_results(file: Path, system: str, results: Results) -> None:
    """Add the results of a file; entries that cannot be read go to the rejected lines by their place."""
    try:
        content = file.read_bytes()
        content.decode()
        entries = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    except (OSError, *UNREADABLE) as error:
        results.rejected.append(Rejected.of(file, 0, Entry, error))
        return
    for place, (task, raw) in enumerate(entries.items(), 1):
        try:
            entry = msgspec.json.decode(raw, type=Entry)
        except UNREADABLE as error:
            results.rejected.append(Rejected.of(file, place, Entry, error))
            continue
        evidence = [
            Evidence(what=f"key point {name}", id=name, outcome=OUTCOMES[_MADE[label]], note=why)
            for name, (label, why) in entry.labels.items()
        ]
        card = scorecard((PROTOCOL, system, task, 0), entry.values, evidence=evidence)
        results.add(card, bytes(raw).decode(), file, place)
        results.tasks.setdefault(task, Task(id=task, prompt=""))


def write_results(run: RunToWrite, out: Path) -> Iterator[Path]:
    """Write a file for each system below `out`; the files written."""
    for (system, sample), cards in run.of(PROTOCOL).items():
        entries = {
            card.task_id: _raw(run, card) or _entry(card)
            for card in cards
            if None not in (card.scores.get(name) for name in ("support", "contradiction", "omission"))
        }
        if entries:
            file = out / folder_name(system, sample) / f"{FILE}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(msgspec.json.format(msgspec.json.encode(entries), indent=4) + b"\n")
            yield file


def _raw(run: RunToWrite, card: Scorecard) -> msgspec.Raw | None:
    """The entry that a scorecard was imported from, if it was."""
    found = run.rows.get((PROTOCOL, card.system, card.task_id, card.sample))
    return None if found is None else msgspec.Raw(found.encode())


def _entry(card: Scorecard) -> Entry:
    rates = {name: 100 * (card.scores[name] or 0.0) for name in ("support", "contradiction", "omission")}
    return Entry(
        labels={
            str(place): (_label(line.outcome), line.note)
            for place, line in enumerate(card.evidence, 1)
            if not line.reason
        },
        support_rate=rates["support"],
        contradicted_rate=rates["contradiction"],
        omitted_rate=rates["omission"],
    )


def _label(outcome: Outcome) -> Literal["Supported", "Omitted", "Contradicted"]:
    match outcome.kind:
        case "met":
            return "Supported"
        case "problem":
            return "Contradicted"
    return "Omitted"
