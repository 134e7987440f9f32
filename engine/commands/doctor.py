"""`adjudge doctor`: what is installed, reachable and missing, and how to fix it."""

import argparse
import asyncio
import os
import platform
import tempfile
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path

import msgspec
from rich.markup import escape

from adjudge.engine.commands.exits import DONE, FAILED
from adjudge.engine.commands.finding import Finding
from adjudge.engine.commands.output import out, print_result
from adjudge.engine.config.judge import JudgeConfig, Seat
from adjudge.engine.config.redaction import hidden
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import StoreError, UsageError
from adjudge.engine.evaluation.assembly import make_book, make_judge
from adjudge.engine.evaluation.dry_run import complaint, dry_run, longest
from adjudge.engine.runs.choice import chosen_dataset
from adjudge.engine.store import JudgmentStore, Place
from adjudge.judges.errors import JudgeError
from adjudge.judges.judgment import probe
from adjudge.judges.plural import plural
from adjudge.prompts import PromptBook

_NEEDED = ("aiohttp", "msgspec", "numba", "numpy", "pyarrow", "trafilatura")
_OPTIONAL = {"ray": "cluster", "vllm": "vllm", "playwright": "render"}
_ANSWER_S = 30.0
_CASES = 2_000
_LOADING_S = 900.0  # a large model, from a network disk
_FIXES = {
    "openai": "start the server, or correct judge: url and model, and the key in judge: api_key_env",
    "vllm": "correct judge: model and engine; vLLM's own messages are on stderr",
}


def examine(config: RunConfig | None = None) -> list[Finding]:
    """Check the installation and, if `config` is given, its store, judge, output folder and cluster."""
    findings = [
        _python(),
        *map(_package, _NEEDED),
        *(_extra(name, extra) for name, extra in _OPTIONAL.items()),
        _temporary(),
    ]
    if config is not None:
        findings += asyncio.run(_configured(config))
        findings += _on_cluster(config)
    # What a judge says may repeat a key that is not the environment's.
    return [msgspec.structs.replace(one, found=hidden(one.found)) for one in findings]


def _python() -> Finding:
    found = platform.python_version()
    return Finding(
        what="Python",
        good=tuple(map(int, platform.python_version_tuple()[:2])) >= (3, 11),
        found=found,
        fix="use 3.11 or newer",
    )


def _package(name: str) -> Finding:
    try:
        return Finding(what=name, good=True, found=version(name))
    except PackageNotFoundError:
        return Finding(what=name, good=False, found="not installed", fix="pip install adjudge")


def _extra(name: str, extra: str) -> Finding:
    what = f"{name} (optional)"
    found = _version_of(name)
    if found is not None:
        return Finding(what=what, good=True, found=found)
    return Finding(
        what=what, good=True, found="not installed", fix=f"pip install 'adjudge[{extra}]' if you want it"
    )


def _version_of(module: str) -> str | None:
    """The version of the installed distribution with `module`, or None; vLLM has distributions of several names."""
    try:
        return version(module)
    except PackageNotFoundError:
        return next((version(name) for name in packages_distributions().get(module, ())), None)


def _temporary() -> Finding:
    fix = "set TMPDIR to a writable folder with room"
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError:  # in none can a file be written
        return Finding(what="temporary folder", good=False, found="none", fix=fix)
    good = os.access(folder, os.W_OK)
    return Finding(what="temporary folder", good=good, found=folder, fix=fix)


async def _configured(config: RunConfig) -> list[Finding]:
    on_cluster = config.resolved.cluster.address != "none"
    seats = config.resolved.bench.seats.items()
    here = [name for name, seat in seats if not (on_cluster and seat.config.replicas)]
    return [await _store(config), *await _judges(config, here), _out(config)]


def _on_cluster(config: RunConfig) -> list[Finding]:
    if config.resolved.cluster.address == "none":
        return []
    try:
        from adjudge.engine.commands.doctor_cluster import check_up
    except ImportError as error:
        return [Finding(what="cluster", good=False, found=str(error), fix="pip install 'adjudge[cluster]'")]
    try:
        return check_up(config, ask_judge)
    except UsageError as error:
        return [Finding(what="cluster", good=False, found=str(error), fix="start it, or correct cluster:")]


def ask_judge(config: RunConfig, names: Sequence[str]) -> list[Finding]:
    """Ask the judges of `config` with these names a probe question, each of their members and servers, from here."""
    return asyncio.run(_judges(config, names))


async def _store(config: RunConfig) -> Finding:
    try:
        store = JudgmentStore(Place.of(config.store))
        await store.open()
    except (StoreError, UsageError) as error:
        return Finding(
            what="store",
            good=False,
            found=str(error),
            fix="set store: to a folder or URI that you can read and write",
        )
    return Finding(what="store", good=True, found=f"{config.store}: {plural(store.rows, 'judgment')}")


async def _judges(config: RunConfig, names: Sequence[str]) -> list[Finding]:
    return [finding for name in names for finding in await _seated(config, config.resolved.bench.seats[name])]


async def _seated(config: RunConfig, seat: Seat) -> list[Finding]:
    name = seat.name
    try:
        book = make_book(config)
        found = [await _judge(name, one, seat.free_text, book) for one in seat.config.each()]
    except UsageError as error:
        return [Finding(what=name, good=False, found=str(error), fix=f"correct {name}: in the configuration")]
    windows = [window for _, window in found if window is not None]
    prompts = await _prompts(config, name, min(windows)) if windows else []
    return [*(finding for finding, _ in found), *prompts]


async def _prompts(config: RunConfig, judge: str, window: int) -> list[Finding]:
    """Whether the prompts of the longest reports fit into the judge's window."""
    try:
        notes = (await dry_run(config, longest(chosen_dataset(config).cases(), _CASES))).notes[judge]
    except (UsageError, StoreError) as error:
        return [Finding(what="prompts", good=False, found=str(error), fix="correct tasks: and reports:")]
    line = complaint(notes, window)
    if line is None:
        return [Finding(what="prompts", good=True, found=f"fit into {window:,} tokens")]
    said, _, fix = line.rpartition("; ")
    return [Finding(what="prompts", good=False, found=said, fix=fix)]


async def _judge(
    name: str, settings: JudgeConfig, free_text: bool, book: PromptBook
) -> tuple[Finding, int | None]:
    """Whether a judge can be used, and its window in tokens."""
    patience = _LOADING_S if settings.backend == "vllm" else _ANSWER_S
    try:
        judge = make_judge(settings, book, free_text)
        try:
            verdicts = await probe(judge, patience)
        finally:
            await judge.close()
    except JudgeError as error:
        fix = _FIXES.get(settings.backend, "")
        return Finding(what=name, good=False, found=str(error), fix=fix), None
    if not verdicts:
        return Finding(what=name, good=True, found=f"{settings.backend} needs no server"), None
    (verdict,) = verdicts
    if not verdict.is_good:
        said, _, fix = verdict.line.rpartition("; ")
        return Finding(what=name, good=False, found=said, fix=fix), None
    by = f" by {verdict.window_by}" if verdict.window_by else ""
    window = "" if verdict.window is None else f", window of {verdict.window:,} tokens{by}"
    most = "" if verdict.most_tokens is None else f", at most {verdict.most_tokens:,} tokens an answer"
    speed = "" if verdict.tokens_per_s is None else f" ({verdict.tokens_per_s:,.0f} tokens per second)"
    manner = "" if verdict.manner is None else f"; asked by {verdict.manner.said}"
    served = "" if verdict.served in ("", settings.model) else f"; it calls the model {verdict.served}"
    said = f"{verdict.where} answered in {verdict.seconds:.2f} s{speed}{window}{most}{manner}{served}"
    return Finding(what=name, good=True, found=said), verdict.window


def _out(config: RunConfig) -> Finding:
    folder = Path(config.out)
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    good = os.access(existing, os.W_OK)
    return Finding(what="out", good=good, found=str(folder), fix=f"make {existing} writable, or pass --out")


def run(options: argparse.Namespace) -> int:
    """Check the installation."""
    findings = examine(None if options.config is None else RunConfig.load(options.config))
    print_result(options, findings, _print_findings)
    return DONE if all(finding.good for finding in findings) else FAILED


def _print_findings(found: Iterable[Finding]) -> None:
    """Print the doctor's findings."""
    console = out()
    for finding in found:
        mark = "[green]ok[/]" if finding.good else "[red]no[/]"
        fix = (
            f"  -> {finding.fix}"
            if finding.fix and (not finding.good or finding.found == "not installed")
            else ""
        )
        console.print(f"{mark}  {escape(finding.what)}: {escape(finding.found)}{escape(fix)}", soft_wrap=True)
