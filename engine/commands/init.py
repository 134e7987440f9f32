"""`adjudge init`: a configuration for the files in a folder, and what was taken for what."""

import argparse
import asyncio
import os
import shlex
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from adjudge.engine.commands.exits import DONE, INCOMPLETE
from adjudge.engine.commands.notices import rejected as print_rejected
from adjudge.engine.commands.output import out, print_result
from adjudge.engine.config.judge import JudgeConfig
from adjudge.engine.config.protocols import named_protocols, protocol_loaders
from adjudge.engine.config.redaction import credentials
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.errors import UsageError, nearest
from adjudge.engine.formats.dataset import Dataset, load_dataset
from adjudge.engine.formats.folders import recorded_in
from adjudge.engine.formats.found import OWN, FoundFolder, found_in
from adjudge.engine.formats.rejected import FormatError, Rejected
from adjudge.engine.runs.lacking import LackingGold, lacking_gold
from adjudge.fetchers.files import write_new
from adjudge.judges.errors import JudgeError
from adjudge.judges.plural import listed, plural
from adjudge.judges.server import OpenAIConfig, Server
from adjudge.scoring.contract.case import Task
from adjudge.scoring.rubrics.criteria import CriteriaError, load_criteria
from adjudge.scoring.text.accounted import account

CONFIG = "adjudge.yaml"
TASKS = "tasks.jsonl"
_SHARED_GOLD = frozenset({"draco", "healthbench", "researchrubrics", "rler"})
"""Protocols that read the gold of `rubrics` by rules of their own; their formats name them."""
_LIST_S = 5.0
_REPORTS_READ = 200  # to see whether reports cite


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """What `adjudge init` wrote, and what it took for what."""

    config: str
    """The configuration that was written."""
    made: str
    """The file of tasks that was written, "" for none."""
    unasked: int
    """How many tasks of that file have no question; their names stand for them."""
    found: dict[str, str]
    """What was found, in words, by the key of the configuration that it became."""
    protocols: tuple[str, ...]
    """The protocols that can run with what is there."""
    others: dict[str, str]
    """Protocols that cannot, or were not chosen, and why."""
    rejected: tuple[Rejected, ...]
    """Lines that are no valid task or report."""


class _Judge(msgspec.Struct, frozen=True):
    """A judge as a configuration has it, and why this one."""

    setting: object
    why: str


def start(
    folder: str = ".",
    out_file: str = "",
    judge: str = "",
    protocols: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
) -> Started:
    """Write a configuration for what is in `folder`. Raises UsageError; then nothing is written.

    No file that is there already is changed.
    """
    root = Path(folder)
    if not root.is_dir():
        instead = (
            f"give its folder: adjudge init {shlex.quote(str(root.parent))}"
            if root.is_file()
            else "give the one that holds your reports"
        )
        raise UsageError(f"init: {folder} is not a folder; {instead}")
    file = Path(out_file) if out_file else root / CONFIG
    if file.exists():
        raise UsageError(f"init: {file} exists and is not overwritten; choose another with --out FILE")
    for name in protocols:
        if name not in protocol_loaders():
            raise UsageError(
                f"--protocol: unknown protocol {name!r}; {nearest(name, sorted(protocol_loaders()))}"
            )
    try:
        found = found_in(root)
        dataset = _read(root, found)
        if found.criteria:
            load_criteria(str(root / found.criteria))
    except CriteriaError as error:
        raise UsageError(f"init: {error}") from error
    except FormatError as error:
        if benchmark := recorded_in(root):
            raise UsageError(
                f"init: {folder} holds results of {benchmark} instead of reports; read them with "
                f"`adjudge import {shlex.quote(folder)} --format {benchmark} --out runs/recorded`"
            ) from error
        raise
    chosen = _chosen(found, dataset, protocols)
    seat = _judge(judge, environ)
    made = file.parent / TASKS if found.made else None
    if made is not None and made.exists():
        raise UsageError(f"init: {made} exists, but no tasks can be read from it; fix it or move it away")
    text = _configuration(root, file, found, dataset, chosen, seat)
    try:
        if made is not None:
            write_new(made, b"".join(msgspec.json.encode(_row(task)) + b"\n" for task in found.made))
        write_new(file, text.encode())
    except OSError as error:
        raise UsageError(f"init: {error.filename or file}: cannot be written: {error.strerror}") from error
    return Started(
        config=str(file),
        made="" if made is None else str(made),
        unasked=found.unasked,
        found=_words(found, dataset, seat),
        protocols=tuple(chosen.use),
        others=chosen.others,
        rejected=tuple(dataset.rejected),
    )


def _row(task: Task) -> dict[str, str]:
    return {"id": task.id, "prompt": task.prompt, "language": task.language}


def _read(root: Path, found: FoundFolder) -> Dataset:
    """What a run of the found files would read."""
    reports = [str(root / one) for one in found.reports]
    if not found.made:
        return load_dataset(found.layout, str(root / found.tasks), reports)
    with tempfile.TemporaryDirectory() as place:
        tasks = Path(place, TASKS)
        tasks.write_bytes(b"".join(msgspec.json.encode(_row(task)) + b"\n" for task in found.made))
        return load_dataset(found.layout, str(tasks), reports)


class _Chosen(msgspec.Struct, frozen=True):
    """The entries of `protocols:` by name, and why the others are not among them."""

    use: dict[str, object]
    others: dict[str, str]


def _chosen(found: FoundFolder, dataset: Dataset, wanted: Sequence[str]) -> _Chosen:
    """What can be scored with what is there: by gold, by citations, else by comparing systems."""
    tasks = list(dataset.tasks.values())
    use: dict[str, object] = {}
    others: dict[str, str] = {}
    lacking = {name: _lacking(name, tasks) for name in protocol_loaders()}
    for name, lack in sorted(lacking.items()):
        is_free = name in ("fact", "pairwise") or (
            name in _SHARED_GOLD and name.replace("_", "-") != found.layout
        )
        if lack is None or lack.lacking < lack.tasks:
            if not is_free:
                use[name] = name
        else:
            others[name] = lack.why.partition(": ")[2] or lack.why
    if found.criteria:
        use["rubrics"] = {"name": "rubrics", "file": found.criteria}
        others.pop("rubrics", None)
    cites = _citing(dataset)
    if cites and found.layout in (OWN, "deepresearch-bench"):
        use["fact"] = "fact"
    else:
        others["fact"] = "scores citations" + ("" if cites else ", and the reports have none")
    if not use and len(dataset.systems) > 1 and not found.unasked:
        use["pairwise"] = "pairwise"
    else:
        others["pairwise"] = "compares two systems' reports, and needs no gold"
    if wanted:
        others |= {name: "not among --protocol" for name in use if name not in wanted}
        use = {name: use.get(name, name) for name in wanted}
    elif not use:
        use["race"] = {"name": "race", "variant": "pointwise"}
    return _Chosen(use, {name: why for name, why in sorted(others.items()) if name not in use})


def _lacking(name: str, tasks: list[Task]) -> LackingGold | None:
    """What gold of `tasks` the protocol lacks, None for nothing."""
    try:
        found = lacking_gold(named_protocols([name], {}, {}), tasks)
    except ConfigError as error:
        return LackingGold(name, len(tasks), len(tasks), str(error))
    return found[0] if found else None


def _citing(dataset: Dataset) -> int:
    """How many of the first reports lead from a statement to an address."""
    texts = (one.load() for one in dataset.reports[:_REPORTS_READ])
    return sum(1 for report in texts if account(report.text, report.citations).pairs)


def _judge(spec: str, environ: Mapping[str, str]) -> _Judge:
    """The judge of `spec`, else the server that the environment names, else the embedded one."""
    if spec:
        JudgeConfig.of(spec)
        return _Judge(spec, "as --judge says")
    url = environ.get("OPENAI_BASE_URL") or environ.get("OPENAI_API_BASE") or ""
    embedded = "it compares words, to try things; --judge openai:http://HOST:PORT/v1#MODEL names a model"
    if not url.startswith(("http://", "https://")) or credentials(url) is not None:
        return _Judge("lexical", embedded)
    offered = [environ["OPENAI_MODEL"]] if environ.get("OPENAI_MODEL") else _models(url)
    if len(offered) != 1:
        said = f"lists {plural(len(offered), 'model')}" if offered else "lists no model"
        return _Judge(
            "lexical", f"the server of OPENAI_BASE_URL {said}; --judge openai:{url}#MODEL chooses one"
        )
    return _Judge({"backend": "openai", "url": url, "model": offered[0]}, "the server of OPENAI_BASE_URL")


def _models(url: str) -> list[str]:
    """The models that the server lists, none if it does not."""

    async def asked() -> list[str]:
        server = Server(OpenAIConfig(url=url, model="-", timeout_s=_LIST_S))
        try:
            return [one.name for one in await server.models()]
        finally:
            await server.close()

    with suppress(JudgeError):
        return asyncio.run(asked())
    return []


def _words(found: FoundFolder, dataset: Dataset, judge: _Judge) -> dict[str, str]:
    """What was taken for what."""
    languages = Counter(task.language for task in dataset.tasks.values())
    spoken = ", ".join(f"{count} {language}" for language, count in languages.most_common())
    samples = 1 + max(one.sample for one in dataset.reports)
    systems = dataset.systems
    several = f", up to {samples} of a system for a task" if samples > 1 else ""
    from_ = found.tasks or f"{TASKS}, made from the reports"
    if found.unasked:
        how_many = (
            "no question was" if found.unasked == len(found.made) else f"{found.unasked:,} questions were not"
        )
        from_ += f"; {how_many} found, and names stand for them"
        alike: dict[str, list[str]] = {}
        for task in found.made:
            alike.setdefault(task.id.casefold(), []).append(task.id)
        for names in alike.values():
            if len(names) > 1:
                from_ += f"; {' and '.join(sorted(names))} are different tasks: use one spelling for one task"
    words = {
        "format": "" if found.layout == OWN else found.layout,
        "tasks": f"{from_}: {plural(len(dataset.tasks), 'task')} ({spoken})",
        "reports": f"{listed(found.reports) or 'those in it'}: {plural(len(dataset.reports), 'report')} of "
        f"{plural(len(systems), 'system')} ({listed(systems)}){several}",
        "criteria": found.criteria,
        "pages": found.pages,
        "judge": f"{_named(judge.setting)}: {judge.why}",
        "left out": listed(found.aside),
    }
    return {key: word for key, word in words.items() if word}


def _named(setting: object) -> str:
    return str(setting["model"]) if isinstance(setting, dict) else str(setting)


def _configuration(
    root: Path, file: Path, found: FoundFolder, dataset: Dataset, chosen: _Chosen, judge: _Judge
) -> str:
    """The text of the configuration: YAML, with comments."""

    def here(path: str) -> str:
        return os.path.relpath(root / path, file.parent)

    words = _words(found, dataset, judge)
    samples = Counter((one.system, one.task_id) for one in dataset.reports)
    due = Counter(samples.values()).most_common(1)[0][0]
    lines = [_comment(words["tasks"])]
    lines += [f"tasks: {_yaml(TASKS if found.made else here(found.tasks))}"]
    if found.layout != OWN:
        lines.append(f"format: {found.layout}")
    lines += [_comment(words["reports"])]
    if found.reports:
        lines.append(f"reports: {_yaml([here(one) for one in found.reports])}")
    if due > 1:
        lines.append(f"samples: {due}  # reports due of each system for each task")
    use = [
        {**one, "file": here(str(one["file"]))} if isinstance(one, dict) and "file" in one else one
        for one in chosen.use.values()
    ]
    lines += ["", f"protocols: {_yaml(use)}", *_comments(chosen.others)]
    lines += ["", f"judge: {_yaml(judge.setting)}", _comment(judge.why)]
    lines += ["", *_fetching(found, here, "fact" in chosen.use)]
    lines += ["store: .adjudge/store  # answers and pages, so that nothing is asked twice", "out: runs/first"]
    return "\n".join(lines) + "\n"


def _fetching(found: FoundFolder, here: Callable[[str], str], reads: bool) -> Iterator[str]:
    if found.pages:
        yield f"fetch: {_yaml({'mode': 'snapshot', 'snapshot': here(found.pages)})}"
    elif reads:
        yield "fetch: live  # cited pages are read from the web; off lists what is cited, and judges no page"
    else:
        yield "fetch: off"


def _comments(others: Mapping[str, str]) -> Iterator[str]:
    """Why the other protocols are not chosen, those with the same reason together."""
    reasons: dict[str, list[str]] = {}
    for name, why in others.items():
        reasons.setdefault("no gold of its benchmark" if why.startswith("no gold for") else why, []).append(
            name
        )
    if reasons:
        yield "# Others (docs/protocols):"
    for why, names in reasons.items():
        yield _comment(f"  {', '.join(names)}: {why}")


def _comment(text: str) -> str:
    """`text`, which may hold others' names, as a comment of one line."""
    return "# " + "".join(char if char.isprintable() else " " for char in text)


def _yaml(value: object) -> str:
    """`value` in YAML's flow style, which JSON is; words that need no quotes have none."""
    match value:
        case str():
            plain = value.replace("/", "").replace("_", "").replace(".", "").replace("-", "")
            return (
                value
                if plain.isascii()
                and plain.isalnum()
                and plain[:1].isalpha()
                and value[0].isalpha()
                and value not in _WORDS
                else _quoted(value)
            )
        case dict():
            return "{" + ", ".join(f"{_yaml(key)}: {_yaml(one)}" for key, one in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_yaml, value)) + "]"
    return msgspec.json.encode(value).decode()


def _quoted(text: str) -> str:
    """`text` in quotes; what YAML refuses (U+007F) or reads as the end of a line (U+2028) is escaped."""
    return "".join(
        char if char.isprintable() else f"\\U{ord(char):08X}" for char in msgspec.json.encode(text).decode()
    )


_WORDS = ("true", "false", "null", "True", "False", "Null", "TRUE", "FALSE", "NULL", "off", "on", "yes", "no")


def run(options: argparse.Namespace) -> int:
    """Write a configuration, and print what was taken for what."""
    found = start(options.folder, options.out or "", options.judge or "", options.protocol or ())
    print_rejected(found.rejected)
    print_result(options, found, _print)
    return INCOMPLETE if found.rejected else DONE


def _print(found: Started) -> None:
    console = out()
    for key, words in found.found.items():
        console.print(f"{key}: {words}", markup=False, soft_wrap=True)
    console.print(f"protocols: {', '.join(found.protocols)}", markup=False, soft_wrap=True)
    if "race" in found.others:
        console.print(f"not race: {found.others['race']}", markup=False, soft_wrap=True)
    wrote = " and ".join(one for one in (found.made, found.config) if one)
    first = f"write the questions into {found.made}, then " if found.unasked else ""
    console.print(
        f"wrote {wrote}; next: {first}adjudge evaluate {shlex.quote(found.config)}",
        markup=False,
        soft_wrap=True,
    )
