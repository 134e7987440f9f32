"""What a benchmark's result files hold, and what a run needs to be written as such files."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from adjudge.engine.formats.rejected import Rejected
from adjudge.fetchers.files import file_name
from adjudge.fetchers.page import Page
from adjudge.scoring.contract.case import Report, Task
from adjudge.scoring.contract.reasons import Reason
from adjudge.scoring.contract.scorecard import Evidence, Missing, Partial, Scorecard, Value

Identity = tuple[str, str, str, int]
"""Protocol, system, task and sample: what a row of results is about."""

ROWS = "recorded.jsonl"
"""The file of an imported run that has the original rows."""
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


class Recorded(msgspec.Struct, frozen=True):
    """A recorded result: its scorecard, and the original row."""

    card: Scorecard
    row: str
    place: str

    @property
    def identity(self) -> Identity:
        """Its identity."""
        return self.card.protocol, self.card.system, self.card.task_id, self.card.sample


class Results(msgspec.Struct):
    """All that a folder of results holds; `pages` by URL are what a benchmark scraped.

    `ranked_by` names the metric of a protocol that recorded results rank by, where it is not the protocol's own.
    """

    found: list[Recorded] = []
    tasks: dict[str, Task] = {}
    reports: list[Report] = []
    pages: dict[str, Page] = {}
    rejected: list[Rejected] = []
    ranked_by: dict[str, str] = {}
    _places: dict[tuple[str, str, str], dict[str, str]] = {}

    def add(self, card: Scorecard, row: str, file: Path, line: int) -> bool:
        """Add the scorecard of a row; whether it was added.

        Another row of one system and task in the same file is another sample, unless it is the same row once more. In
        another file it is rejected, unless it says the same.
        """
        key = card.protocol, card.system, card.task_id
        place, given = f"{file}:{line}", self._places.setdefault(key, {})
        if row in given:
            return False
        if given and not next(iter(given.values())).startswith(f"{file}:"):
            first = next(one for one in self.found if (*one.identity[:3],) == key)
            if first.card != card:
                why = (
                    f"system {card.system!r}, task {card.task_id!r} was given before with other results "
                    f"({first.place}); import one of the two files"
                )
                self.rejected.append(Rejected(str(file), line, why))
            return False
        sampled = msgspec.structs.replace(card, sample=len(given))
        given[row] = place
        self.found.append(Recorded(sampled, row, place))
        return True


class RunToWrite(msgspec.Struct, frozen=True, dict=True):
    """A run for a writer of results: scorecards in order of protocol, system, task and sample.

    `rows` are those it was imported from, `prompts` its tasks' by id, `texts` its reports' by system, task and sample.
    """

    cards: list[Scorecard]
    rows: dict[Identity, str]
    prompts: dict[str, str]
    texts: dict[tuple[str, str, int], str]
    pages: dict[str, Page]

    def of(self, protocol: str) -> dict[tuple[str, int], list[Scorecard]]:
        """The scorecards of a protocol by system and sample, in the order of `rows`, or else of their tasks' ids."""
        found: dict[tuple[str, int], list[Scorecard]] = {}
        for card in self.cards:
            if card.protocol == protocol:
                found.setdefault((card.system, card.sample), []).append(card)
        return {
            key: sorted(cards, key=lambda card: (self._places.get(_identity(card), -1), _task_order(card)))
            for key, cards in found.items()
        }

    @cached_property
    def _places(self) -> dict[Identity, int]:
        return {identity: place for place, identity in enumerate(self.rows)}

    def row(self, card: Scorecard) -> dict[str, Any]:
        """The row that `card` was imported from, with the task's id (a number where it is one) and prompt first."""
        raw = self.rows.get(_identity(card))
        if raw is not None:
            row: dict[str, Any] = json.loads(raw)
            return row
        made: dict[str, Any] = {"id": row_number(card.task_id)}
        if card.task_id in self.prompts:
            made["prompt"] = self.prompts[card.task_id]
        return made


def _identity(card: Scorecard) -> Identity:
    return card.protocol, card.system, card.task_id, card.sample


def _task_order(card: Scorecard) -> tuple[bool, int, str]:
    number = row_number(card.task_id)
    return (False, number, "") if isinstance(number, int) else (True, 0, number)


def row_number(task_id: str) -> int | str:
    """A task's id as benchmarks write it: a number, if it reads as one."""
    plain = task_id.isascii() and task_id.isdecimal() and len(task_id) < 19 and str(int(task_id)) == task_id
    return int(task_id) if plain else task_id


def scorecard(
    identity: Identity,
    values: Mapping[str, Value | None],
    reason: Reason = "judge_unparseable",
    evidence: Iterable[Evidence] = (),
) -> Scorecard:
    """The scorecard of recorded `values`; None is unscored for `reason`. Raises ValueError for an infinite value."""
    bounds = {name: value.bounds for name, value in values.items() if isinstance(value, Partial)}
    plain = {name: value.value if isinstance(value, Partial) else value for name, value in values.items()}
    missing: dict[str, Reason] = {
        name: value.reason if isinstance(value, Missing) else reason
        for name, value in plain.items()
        if value is None or isinstance(value, Missing)
    }
    scores = {name: None if isinstance(value, Missing) else value for name, value in plain.items()}
    for name, number in scores.items():
        if number is not None and not math.isfinite(number):
            raise ValueError(f"{name} must be a finite number")
    protocol, system, task_id, sample = identity
    return Scorecard(
        protocol=protocol,
        system=system,
        task_id=task_id,
        sample=sample,
        repeat=0,
        scores=scores,
        status="unscored" if missing else "scored",
        reason=next(iter(missing.values()), None),
        reasons=missing,
        evidence=tuple(evidence),
        bounds=bounds,
    )


def language_of(prompt: str) -> str:
    """The language of a prompt whose task does not say: Chinese or English."""
    return "zh" if _CHINESE.search(prompt) else "en"


_SAMPLE = re.compile(r" sample (\d+)$")


def folder_name(system: str, sample: int) -> str:
    """A folder's or file's name for the results of a system's sample, which no other sample or system has."""
    name = file_name(system)
    if sample:
        return f"{name} sample {sample}"
    return _SAMPLE.sub(r"%20sample \1", name)  # of a system that is itself called so


def dumped(row: object) -> str:
    """`row` as the benchmarks' own code writes JSON."""
    return json.dumps(row, ensure_ascii=False)


def write_lines(file: Path, rows: Iterable[object]) -> Iterator[Path]:
    """Write `rows` as JSON Lines, if there are any."""
    lines = [f"{dumped(row)}\n" for row in rows]
    if lines:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(lines), encoding="utf-8")
        yield file
