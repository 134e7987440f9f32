"""What controls are made of: reports as prose, and their sentences that state one figure.

A sentence with several is backed in part when one of them is wrong, and would decide nothing. Reports at hand go first;
shipped ones (invented places, invented figures) stand in where a language has too few.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from itertools import islice

import msgspec

from adjudge.judges.lexical import figures, sentences
from adjudge.scoring.contract.case import Case
from adjudge.scoring.text.blocks import lines
from adjudge.scoring.text.cleaning import clean_report

MOST_CHARS = 6_000
"""Of a report that is shown whole; a longer one is shown up to the end of a line."""
_PAGE_CHARS = 1_200
_READ = 200  # reports that are looked through, of however many
_READ_CHARS = 40_000  # of each
_SHORTEST, _LONGEST = 12, 300  # characters of a statement
_STOPS = (".", "!", "。", "！")
# A denial of these would not turn them around; and marks, which statements have not.
_TURNED = re.compile(
    r"\b(?:not|no|never|none|nor|without|cannot|only)\b|n't\b|[?？不没無无未非仅只\[\]{}<>|*#]", re.IGNORECASE
)
_FIGURE = re.compile(
    r"(?<![A-Za-z0-9_.,])(?:\d{1,3}(?:,\d{3}){1,4}|\d{1,15})(?:\.\d{1,6})?(?![A-Za-z0-9_]|[.,]\d)"
)
_PARTED = re.compile(r"[,;:，；：、]")
_AUXILIARY = re.compile(r"\b(?:is|are|was|were|can|could|will|would|should|must)\b(?! not)")
_CONDITIONS = ("if", "when", "while", "although", "though", "unless", "whether", "because", "since", "as")
_AHEAD = 50  # characters in which a sentence's own verb is looked for


class Statement(msgspec.Struct, frozen=True):
    """A sentence that states one figure, the `page` (a part of a report) that states it, and that report's `task`."""

    text: str
    page: str
    task: str


class Material(msgspec.Struct, frozen=True):
    """A task and a report on it, in one language, without citation marks."""

    language: str
    task: str
    report: str
    statements: tuple[Statement, ...]

    @classmethod
    def of(cls, language: str, task: str, text: str) -> "Material":
        """What a report offers; linear in its text, of which the first 40,000 characters are read."""
        clean = clean_report(_head(text, _READ_CHARS))
        return cls(language, task, _head(clean, MOST_CHARS), tuple(_statements(clean, task)))


def at_hand(cases: Iterable[Case], language: str) -> list[Material]:
    """What the first reports in `language` offer, one a task, those that state most first."""
    by_task: dict[str, list[Material]] = {}
    spoken = (case for case in cases if case.task.language == language)
    for case in islice(spoken, _READ):
        found = Material.of(language, case.task.prompt, case.report.text)
        by_task.setdefault(case.task.id, []).append(found)
    best = (max(several, key=lambda one: len(one.statements)) for several in by_task.values())
    return sorted((one for one in best if one.statements), key=lambda one: -len(one.statements))


def shipped(language: str) -> list[Material]:
    """The shipped reports in `language`, or in English if there are none."""
    rows = files("adjudge.engine.trial").joinpath("material.jsonl").read_text(encoding="utf-8").splitlines()
    every = [Material.of(**msgspec.json.decode(row, type=dict[str, str])) for row in rows]
    return [one for one in every if one.language == language] or [
        one for one in every if one.language == "en"
    ]


def negated(statement: str, language: str) -> str:
    """`statement` denied: by its own verb where that is plain, else as a whole."""
    if language == "zh":
        return f"并非{statement}"
    first = statement.split(maxsplit=1)[0].strip(",").lower()
    plain = first not in _CONDITIONS and not _PARTED.search(statement)
    if plain and (verb := _AUXILIARY.search(statement, 0, _AHEAD)):
        return f"{statement[: verb.end()]} not{statement[verb.end() :]}"
    return f"It is not true that {statement}"


def with_another_figure(statement: str, page: str) -> str:
    """`statement` with another figure in place of its own, one that `page` does not state."""
    known = figures(page)
    found = next(_FIGURE.finditer(statement))
    value, places = float(found[0].replace(",", "")), len(found[0].partition(".")[2])
    year = not places and 1000 <= value <= 2100
    for step in range(1, len(known) + 2):
        other = value + 3 + 7 * step if year else value * (1 + step) + 2 + step
        if round(other, places) not in known:
            break
    told = f"{other:,.{places}f}" if "," in found[0] else f"{other:.{places}f}"
    return statement[: found.start()] + told + statement[found.end() :]


def _statements(text: str, task: str) -> Iterator[Statement]:
    seen: set[str] = set()
    start = 0
    for line in lines(text):
        start = max(start, text.find(line.raw, start))
        for one in sentences(line.text) if line.kind in ("prose", "item") else ():
            place = line.raw.find(one)
            if place >= 0 and one not in seen and _states(one):
                seen.add(one)
                yield Statement(one, _around(text, start + place), task)


def _states(sentence: str) -> bool:
    return (
        _SHORTEST <= len(sentence) <= _LONGEST
        and sentence.endswith(_STOPS)
        and [found.start() > 0 for found in _FIGURE.finditer(sentence)] == [True]
        and not _TURNED.search(sentence)
    )


def _around(text: str, place: int) -> str:
    """The whole lines of `text` with the 1,200 characters around `place`."""
    before = text.rfind("\n", 0, max(0, place - _PAGE_CHARS // 2)) + 1
    after = text.find("\n", place + _PAGE_CHARS // 2)
    return text[before : len(text) if after < 0 else after].strip()


def _head(text: str, size: int) -> str:
    """`text` up to the last end of a line within `size` characters."""
    if len(text) <= size:
        return text
    return text[: text.rfind("\n", 0, size) if "\n" in text[:size] else size]


def from_other_tasks(own: Material, every: Sequence[Material]) -> list[Material]:
    """The materials of other tasks in one language; at least one, of the shipped ones if need be."""
    others = [one for one in every if one.task != own.task]
    return others or [one for one in shipped(own.language) if one.task != own.task]
