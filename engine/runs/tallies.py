"""What a run adds up as its scorecards pass, the same whatever their order.

How long reports are, what judges said, which of them say the same to everything, how many reports do more to please a
judge than they may, and which pages could not be read.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import get_args

import msgspec

from adjudge.engine.store.place import Place
from adjudge.engine.store.scorecards import stored_signs
from adjudge.fetchers.page import PageReason
from adjudge.fetchers.urls import MalformedURL, site_of
from adjudge.scoring.contract.answers import Answers, AnswerTally
from adjudge.scoring.contract.scorecard import Outcome, Scorecard

__all__ = [
    "LEAST_VERDICTS",
    "SIGN_LIMITS",
    "AnswersOf",
    "AnswersOfRun",
    "Constant",
    "ConstantVerdicts",
    "MeanLength",
    "ReportLengths",
    "Signed",
    "SignedReports",
    "SignsOf",
    "Unread",
    "UnreadPages",
    "added_signs",
    "best_known_lengths",
    "joined_answers",
    "joined_unread",
    "signs_so_far",
]


class MeanLength(msgspec.Struct, frozen=True, kw_only=True):
    """Means over so many `reports` of a system: words, about how many tokens, addresses cited."""

    reports: int
    words: float
    tokens: float
    citations: float


class ReportLengths:
    """Adds up lengths of reports, each once for a protocol, at the judge's first repeat."""

    def __init__(self) -> None:
        self._reports: Counter[tuple[str, str]] = Counter()
        self._sums: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])

    def take(self, card: Scorecard) -> None:
        """Add the report of `card`, if its length is known."""
        if card.repeat or card.length is None:
            return
        of = card.system, card.protocol
        self._reports[of] += 1
        for place, one in enumerate((card.length.words, card.length.tokens, card.length.citations)):
            self._sums[of][place] += one

    def result(self) -> dict[str, MeanLength]:
        """The means of every system until now, from the protocol that saw the most of its reports."""
        found = []
        for (system, protocol), count in sorted(self._reports.items()):
            words, tokens, citations = (one / count for one in self._sums[system, protocol])
            found.append({system: MeanLength(reports=count, words=words, tokens=tokens, citations=citations)})
        return best_known_lengths(found)


def best_known_lengths(several: Iterable[dict[str, MeanLength]]) -> dict[str, MeanLength]:
    """Of every system the means over the most reports, the first of equals."""
    found: dict[str, MeanLength] = {}
    for one in several:
        for system, mean in one.items():
            if system not in found or mean.reports > found[system].reports:
                found[system] = mean
    return found


AnswersOf = dict[str, dict[str, Answers]]
"""By protocol and question type."""


class AnswersOfRun:
    """Adds up the answers of scorecards; one that several scorecards share counts for each."""

    def __init__(self) -> None:
        self._found: defaultdict[str, AnswerTally] = defaultdict(AnswerTally)

    def take(self, card: Scorecard) -> None:
        """Count the answers that `card` rests on."""
        for question, answers in card.answers.items():
            self._found[card.protocol].add(question, answers)

    def result(self) -> AnswersOf:
        """What was counted until now."""
        return {protocol: tally.result() for protocol, tally in sorted(self._found.items())}


def joined_answers(several: Iterable[AnswersOf]) -> AnswersOf:
    """The answers of several runs."""
    found: defaultdict[str, AnswerTally] = defaultdict(AnswerTally)
    for one in several:
        for protocol, types in one.items():
            for question, answers in types.items():
                found[protocol].add(question, answers)
    return {protocol: tally.result() for protocol, tally in sorted(found.items())}


LEAST_VERDICTS = 20
"""The number of equal verdicts from which they are told of: fewer may be chance."""

_NO_VERDICTS = frozenset({"missing", "note", "problem"})


class Constant(msgspec.Struct, frozen=True):
    """So many `verdicts` of a judge, each of them this (`said`, in words)."""

    said: str
    verdicts: int


class ConstantVerdicts:
    """Finds protocols whose verdicts are all equal, as scorecards pass; the same whatever their order."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, int] | None] = {}

    def take(self, card: Scorecard) -> None:
        """Look at the verdicts in `card`; those of a protocol that had different ones are not looked at."""
        found = self._found.get(card.protocol, ("", 0))
        if found is None:
            return
        for line in card.evidence:
            if line.judgment and line.outcome.kind not in _NO_VERDICTS:
                said = _said(line.outcome)
                if found[1] and found[0] != said:
                    found = None
                    break
                found = said, found[1] + 1
        self._found[card.protocol] = found

    def result(self) -> dict[str, Constant]:
        """By protocol, the verdict that was given every time, at least 20 times."""
        return {
            name: Constant(*found)
            for name, found in sorted(self._found.items())
            if found is not None and found[1] >= LEAST_VERDICTS
        }


def _said(outcome: Outcome) -> str:
    """The words that equal verdicts share: of a mark, its points, beside those of a reference if there is one."""
    if outcome.kind != "points" or outcome.points is None:
        return outcome.kind.replace("_", " ")
    beside = "" if outcome.reference is None else f" beside {outcome.reference:g}"
    return f"{outcome.points:g}{'' if outcome.most is None else f' of {outcome.most:g}'}{beside}"


SIGN_LIMITS = {"injections": 1.0, "hidden": 1.0, "criteria_echo": 0.5, "repeated": 0.25}
"""From which value on a sign of a report is told."""


class Signed(msgspec.Struct, frozen=True):
    """Of so many `reports`, those that are at or `beyond` the limit of a sign, by its name."""

    reports: int
    beyond: dict[str, int]


SignsOf = dict[str, dict[str, Signed]]
"""By protocol and system."""


class SignedReports:
    """Counts reports with signs at the judge's first repeat, once for each protocol, however often it was compared."""

    def __init__(self) -> None:
        self._compared: set[tuple[str, str, str, int]] = set()
        self._reports: Counter[tuple[str, str]] = Counter()
        self._beyond: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)

    def take(self, card: Scorecard) -> None:
        """Count the report of `card`, and its rival's, if somebody has looked at them."""
        if card.repeat == 0:
            for system, signs in ((card.system, card.signs), (card.rival, card.rival_signs)):
                self.add(card.protocol, system, card.task_id, card.sample, signs, bool(card.rival))

    def add(
        self, protocol: str, system: str, task: str, sample: int, signs: Mapping[str, float], compared: bool
    ) -> None:
        """Count a report with these `signs`; one that was `compared` may come again."""
        report = protocol, system, task, sample
        if not signs or report in self._compared:
            return
        if compared:
            self._compared.add(report)
        self._reports[report[:2]] += 1
        self._beyond[report[:2]].update(
            name for name, least in SIGN_LIMITS.items() if signs.get(name, 0.0) >= least
        )

    def result(self) -> SignsOf:
        """What was counted until now."""
        found: SignsOf = {}
        for (protocol, system), count in sorted(self._reports.items()):
            beyond = dict(sorted(self._beyond[protocol, system].items()))
            found.setdefault(protocol, {})[system] = Signed(count, beyond)
        return found


def signs_so_far(place: Place, run: str) -> SignsOf:
    """What is counted in the scorecards of `run` that the store at `place` holds by now. Raises StoreError."""
    counted = SignedReports()
    for one in stored_signs(place, run):
        counted.add(*one)
    return counted.result()


def added_signs(several: Iterable[SignsOf]) -> dict[tuple[str, str], Signed]:
    """The counts of several runs together."""
    found: dict[tuple[str, str], Signed] = {}
    for one in several:
        for protocol, systems in one.items():
            for system, more in systems.items():
                before = found.get((protocol, system), Signed(0, {}))
                beyond = Counter(before.beyond) + Counter(more.beyond)
                found[protocol, system] = Signed(before.reports + more.reports, dict(beyond))
    return found


_REASONS = frozenset(get_args(PageReason)) - {"citation_malformed", "pages_off"}
_MOST = 200  # hosts and reasons that are kept
_LONGEST = 200  # characters of an example


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """The `pages` of a `host` that were not read for one `reason`; "" stands for all further hosts.

    `example` is the first of their addresses in alphabetical order.
    """

    host: str
    reason: str
    pages: int
    example: str


class UnreadPages:
    """Counts pages that were not read, as scorecards pass; the same whatever their order."""

    def __init__(self) -> None:
        self._pages: dict[tuple[str, str], set[int]] = {}
        self._examples: dict[tuple[str, str], str] = {}

    def take(self, card: Scorecard) -> None:
        """Count what `card` names."""
        for line in () if card.key else card.evidence:  # one with a key rests on no page
            if line.url and line.reason in _REASONS:
                try:
                    key = site_of(line.url), line.reason
                except MalformedURL:
                    continue
                self._pages.setdefault(key, set()).add(hash(line.url))
                self._examples[key] = min(self._examples.get(key, line.url), line.url)

    def result(self) -> tuple[Unread, ...]:
        """What was not read until now, most pages first."""
        found = [
            Unread(
                host=host, reason=reason, pages=len(pages), example=self._examples[host, reason][:_LONGEST]
            )
            for (host, reason), pages in self._pages.items()
        ]
        return joined_unread(found)


def joined_unread(found: list[Unread]) -> tuple[Unread, ...]:
    """What several runs could not read, most pages first; hosts beyond 200 are counted together."""
    counts: dict[tuple[str, str], Unread] = {}
    for one in found:
        before = counts.get((one.host, one.reason))
        counts[one.host, one.reason] = (
            one
            if before is None
            else msgspec.structs.replace(
                before, pages=max(before.pages, one.pages), example=min(before.example, one.example)
            )
        )
    ordered = sorted(counts.values(), key=lambda one: (not one.host, -one.pages, one.host, one.reason))
    rest: dict[str, Unread] = {}
    for one in ordered[_MOST:]:
        before = rest.get(one.reason)
        pages = one.pages if before is None else before.pages + one.pages
        example = one.example if before is None else before.example
        rest[one.reason] = Unread(host="", reason=one.reason, pages=pages, example=example)
    return (*ordered[:_MOST], *rest.values())
