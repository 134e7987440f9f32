"""What a reader of a leaderboard must know before comparing: notes beside its figures."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType

import msgspec

from adjudge.engine.config.metrics import headlines
from adjudge.engine.config.protocols import protocol_loaders
from adjudge.engine.evaluation.budget import cost_of
from adjudge.engine.runs.board import FLAGGED_BELOW, Correction, MetricBoard
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.tallies import LEAST_VERDICTS
from adjudge.engine.statistics.selection import cause_of, said_of
from adjudge.judges import Question, Usage
from adjudge.judges.plural import plural

__all__ = ["differing", "notes_on"]

_TESTS = "adjudge judge tests it"
_OF_ALL = "preamble"  # the first words of every prompt


def _prompts_of(protocol: type) -> set[str]:
    """The prompts of the questions that a protocol's module, or a module that it takes something from, knows."""
    inside = (protocol.__module__.rpartition(".")[0] or protocol.__module__, "adjudge.scoring.")
    names: set[str] = set()
    seen: set[str] = set()
    waiting = [protocol.__module__]
    while waiting:
        name = waiting.pop()
        if name in seen or not name.startswith(inside):
            continue
        seen.add(name)
        for value in vars(import_module(name)).values():
            if isinstance(value, type) and issubclass(value, Question):
                names.add(getattr(value, "prompt", ""))
            found = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            waiting += [found] if isinstance(found, str) else []
    return names


def notes_on(
    records: Sequence[RunRecord],
    boards: Sequence[MetricBoard],
    corrected: Sequence[Correction],
) -> tuple[str, ...]:
    """The notes on a leaderboard of the runs `records`: on its `boards`, people's corrections."""
    return (
        *_choosing(records),
        *differing(records),
        *_changing(records),
        *_calling(records),
        *_judging(records),
        *_costing(records),
        *(record.stopped.note for record in records if record.stopped is not None),
        *_correcting(corrected),
        *dict.fromkeys(note for board in _ranking(boards) for note in _lacking(board, records)),
        *_unscored_beside(boards, records),
    )


def _choosing(records: Sequence[RunRecord]) -> Iterator[str]:
    choices = dict.fromkeys(record.config.select.words for record in records)
    if len(choices) == 1:
        yield from (f"chosen by this run: {words}" for words in choices if words)
    else:
        yield from (
            f"run {record.run} evaluated only {record.config.select.words}; choose the same here to compare on it"
            for record in records
            if record.config.select.words
        )


def differing(records: Sequence[RunRecord]) -> Iterator[str]:
    """What makes the scores of several runs hard to compare, one sentence each: of protocols that several have."""
    names = sorted({name for record in records for name in record.metrics})
    for what, of in (
        ("judges", _judges),
        ("prompts", _prompts),
        ("protocol options", _options),
        ("criteria", _criteria),
    ):
        apart = [
            name
            for name in names
            if _unlike([of(record, name) for record in records if name in record.metrics])
        ]
        if apart:
            where = "" if apart == names else f" for {', '.join(apart)}"
            yield f"these runs differ in their {what}{where}: compare their scores with care"


def _unlike(found: Sequence[Mapping[str, Hashable]]) -> bool:
    """Whether something has several values; what only some of the runs have is no difference."""
    values: defaultdict[str, set[Hashable]] = defaultdict(set)
    for one in found:
        for name, value in one.items():
            values[name].add(value)
    return any(len(several) > 1 for several in values.values())


def _judges(record: RunRecord, protocol: str) -> Mapping[str, Hashable]:
    """The judge of a protocol, and those of the media that its questions carry."""
    media = {name: judge.fingerprint for name, judge in record.judging.protocol_media(protocol).items()}
    return {"": record.judging.protocol(protocol).fingerprint, **media}


def _prompts(record: RunRecord, protocol: str) -> Mapping[str, Hashable]:
    """File name and digest of the prompts that a protocol may send, or those of its published calls.

    Where the protocol is not installed here, all that are recorded.
    """
    loaders = protocol_loaders()
    if protocol not in loaders:
        return record.prompts
    own = {_OF_ALL}
    if protocol not in record.config.published_protocols():
        own |= _prompts_of(loaders[protocol]())
    return {
        file: digest
        for file, digest in record.prompts.items()
        if file.partition(".")[0] in (own if file.endswith(".md") else (protocol,))
    }


def _options(record: RunRecord, protocol: str) -> Mapping[str, Hashable]:
    """The options that a protocol was given, without those that say what it does anyway.

    A file of criteria is compared by what it holds, where that is recorded: `_criteria`.
    """
    entries = ({"name": one} if isinstance(one, str) else one for one in record.config.protocols)
    usual = _defaults(protocol)
    held = {"file"} if record.criteria else set()
    given = (
        sorted((key, str(value)) for key, value in one.items() if usual.get(key) != value and key not in held)
        for one in entries
        if one.get("name") == protocol
    )
    return {"": str(list(given))}


def _defaults(protocol: str) -> dict[str, object]:
    """What the options of an installed protocol are where nothing is said."""
    loader = protocol_loaders().get(protocol)
    found = None if loader is None else loader()
    if not (isinstance(found, type) and issubclass(found, msgspec.Struct)):
        return {}
    return {
        one.name: msgspec.to_builtins(one.default)
        for one in msgspec.structs.fields(found)
        if one.default is not msgspec.NODEFAULT
    }


def _criteria(record: RunRecord, protocol: str) -> Mapping[str, Hashable]:
    """The digests of a protocol's files of criteria; all that are recorded where it is not known whose they are."""
    named = [str(one["name"]) for one in record.config.protocols if isinstance(one, dict) and "file" in one]
    if len(named) != len(record.criteria):
        return {"": record.criteria}
    digests = zip(named, record.criteria, strict=True)
    return {"": tuple(digest for name, digest in digests if name == protocol)}


def _changing(records: Sequence[RunRecord]) -> Iterator[str]:
    changed = _changed_tasks(records)
    if changed:
        yield f"these runs differ in the prompt or gold of {plural(changed, 'task')}: compare their scores with care"


def _calling(records: Sequence[RunRecord]) -> Iterator[str]:
    """What was asked in a benchmark's own words, and whether it was in every run."""
    for name in sorted({name for record in records for name in record.config.published_protocols()}):
        asked = [record.config.published_protocols() for record in records if name in record.metrics]
        if all(name in each for each in asked):
            yield f"{name}: asked in the benchmark's own calls (call: published)"
        else:
            yield f"{name}: some runs ask in the benchmark's own calls (call: published), others ours; do not compare"
    for record in records:
        published = (
            one
            for one in record.config.protocols
            if isinstance(one, dict) and one.get("name") == "race" and one.get("call") == "published"
        )
        if record.config.articles == "cleaned" and any("cleaning" not in one for one in published):
            yield f"run {record.run}: race takes its cleaned articles as they are (cleaning: none)"


def _changed_tasks(records: Sequence[RunRecord]) -> int:
    """How many task ids stand for different tasks in different runs."""
    digests: dict[str, set[str]] = {}
    for record in records:
        for name, task in record.tasks.items():
            digests.setdefault(name, set()).add(task.digest)
    return sum(len(found - {""}) > 1 for found in digests.values())


def _judging(records: Sequence[RunRecord]) -> Iterator[str]:
    if any(judge.name == "lexical" for record in records for judge in record.judging.each):
        yield "the lexical judge sees words, not meaning: a baseline, not a measure of quality"
    for record in records:
        if record.recorded:
            yield f"run {record.run}: results recorded by {record.recorded}, judged by {record.judge.name}"
        for judge in record.judging.each:
            related = same_family(judge.name, record.systems)
            if related:
                family = ", ".join(related)
                yield f"the judge {judge.name} is from the same family as {family}: it may favour its own"
        for protocol, constant in record.constant.items():
            yield (
                f"{protocol}: all {constant.verdicts:,} verdicts are the same ({constant.said}): the reports do not "
                f"differ in what is asked, or the judge says the same to everything; {_TESTS}"
            )
        yield from _answering(record)
        yield from _changing_judges(record)


def _answering(record: RunRecord) -> Iterator[str]:
    """Question types that have one answer, whatever was asked, and those that never tell two texts apart."""
    for protocol, types in record.answers.items():
        if protocol in record.constant:
            continue
        for name, one in types.items():
            what = f"{protocol}: {one.words or name}"
            if one.choices >= LEAST_VERDICTS and len(one.said) == 1:
                yield f"{what}: all {one.choices:,} answers are the same ({next(iter(one.said))}); {_TESTS}"
            elif one.pairs >= LEAST_VERDICTS and one.equal == one.pairs:
                yield f"{what}: both texts get the same mark every time ({one.pairs:,} times); {_TESTS}"


def _changing_judges(record: RunRecord) -> Iterator[str]:
    """Protocols that were judged by more models than the run has judges, or by a server that changed meanwhile."""
    for protocol, types in record.answers.items():
        models: Counter[str] = Counter()
        systems: Counter[str] = Counter()
        for one in types.values():
            models.update(one.models)
            systems.update(one.systems)
        judges = len(record.judging.all_of(protocol))
        if len(models) > judges:
            yield (
                f"{protocol}: answers come from {len(models)} models ({_shares(models)}): scores of different judges "
                "do not compare; strict_identity: true ends such a run"
            )
        elif len(systems) > judges:
            yield f"{protocol}: the judge's server called its system by {len(systems)} names ({_shares(systems)})"


def _shares(counts: Counter[str]) -> str:
    shown = [f"{name[:60] or 'others'} {count / counts.total():.0%}" for name, count in counts.most_common(3)]
    return ", ".join([*shown, *(["..."] if len(counts) > len(shown) else [])])


def _costing(records: Sequence[RunRecord]) -> Iterator[str]:
    """What judging a report took, by protocol, and what that cost where the run has its judge's price."""
    for record in records:
        of_run = f" in run {record.run}" if len(records) > 1 else ""
        for protocol, effort in record.effort.items():
            read, wrote = effort.prompt_tokens, effort.completion_tokens
            took = f"{read / effort.scorecards:,.0f} prompt and {wrote / effort.scorecards:,.0f} completion tokens"
            prices = [record.config.prices.get(judge.name) for judge in record.judging.all_of(protocol)]
            cost = ""
            if len(prices) == 1 and prices[0] is not None:
                cost = f", which cost {cost_of(Usage(read, 0, wrote), prices[0]) / effort.scorecards:.4g}"
            yield f"{protocol}: judging a report took {took}{cost}{of_run}"


def _correcting(corrected: Sequence[Correction]) -> Iterator[str]:
    yield from dict.fromkeys(one.basis for one in corrected if one.differences)
    for one in corrected:
        yield from one.notes
        if one.left_out:
            yield f"{one.protocol} {one.metric}: people rated reports that are not in these runs: {one.left_out}"


def _lacking(board: MetricBoard, records: Sequence[RunRecord]) -> Iterator[str]:
    """What is missing from a headline metric, and what to do about it."""
    name = f"{board.protocol} {board.metric}"
    if board.no_ranking:
        yield f"{name}: no ranking: {board.no_ranking}"
    elif flagged := [row.system for row in board.standings if row.flagged]:
        yield f"{name}: not ranked, under {FLAGGED_BELOW:.0%} scored: {', '.join(flagged)} (*)"
    if any(row.open for row in board.standings):
        yield f"{name}: missing scores count as the worst they could be; round brackets hold what the mean could become"
    if board.n_without_gold:
        yield f"{board.protocol}: tasks without gold are left out for all systems: {board.n_without_gold}"
        yield from said_of(board.protocol, _without_gold(records, board.protocol), board.protocol, records)
        yield from _whole_lacking(board.protocol, records)
    yield from said_of(name, _unscored(board), board.protocol, records, board.not_submitted)


def _whole_lacking(protocol: str, records: Sequence[RunRecord]) -> Iterator[str]:
    """Which file would have held the gold of all tasks."""
    for why in dict.fromkeys(record.lacking.get(protocol, "") for record in records):
        if why:
            yield f"{protocol}: {why}; add the file, or choose options of {protocol} that need no gold from it"


def _without_gold(records: Sequence[RunRecord], protocol: str) -> Counter[str]:
    """The scorecards that lack gold, by reason."""
    counts: Counter[str] = Counter()
    for one in (failure for record in records for failure in record.failures):
        if one.protocol == protocol and cause_of(one.reason) == "gold":
            counts[one.reason] += one.scorecards
    return counts


def _unscored_beside(boards: Sequence[MetricBoard], records: Sequence[RunRecord]) -> Iterator[str]:
    """Metrics that lack values where their protocol's headline metric has them: the standings do not show it."""
    heads: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for board in _ranking(boards):
        heads[board.protocol] |= _unscored(board)
    beside: dict[tuple[str, str, int], list[str]] = {}
    for board in boards:
        more = _unscored(board) - heads[board.protocol]
        for reason, count in more.items():
            beside.setdefault((board.protocol, reason, count), []).append(board.metric)
    for (protocol, reason, count), metrics in sorted(beside.items()):
        name = f"{protocol} {', '.join(metrics)}, where the headline is scored"
        yield from said_of(name, {reason: count}, protocol, records)


def _ranking(boards: Sequence[MetricBoard]) -> Iterator[MetricBoard]:
    """The boards that protocols are ranked by."""
    for protocol in dict.fromkeys(board.protocol for board in boards):
        yield from headlines(board for board in boards if board.protocol == protocol)


def _unscored(board: MetricBoard) -> Counter[str]:
    return sum((Counter(row.unscored) for row in board.standings), Counter())


def same_family(judge: str, systems: Sequence[str]) -> list[str]:
    """The `systems` whose names hold the family name of a `judge` model: its first word of three letters or more."""
    model = judge.rsplit("/", 1)[-1].lower()
    word = ""
    for char in model + " ":
        if char.isalpha():
            word += char
        elif len(word) >= 3:
            break
        else:
            word = ""
    return [system for system in systems if len(word) >= 3 and word in system.lower()]
