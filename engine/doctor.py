"""What is installed, reachable and missing, and how to mend it."""

import asyncio
import os
import platform
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
from adjudge.engine.config import ConfigError, RunConfig
from adjudge.engine.house import make_book, make_judge
from adjudge.engine.store import JudgmentStore, Place, StoreError
from adjudge.judges import Asked
from adjudge.judges.errors import JudgeError
from adjudge.judges.probe import Probe

__all__ = ["Finding", "examine"]

_NEEDED = ("aiohttp", "msgspec", "numba", "numpy", "pyarrow", "trafilatura")
_OPTIONAL = {"ray": "cluster", "vllm": "vllm"}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at. `mend` says what to do when it is not `good`."""

    what: str
    good: bool
    found: str
    mend: str = ""


def examine(config: RunConfig | None = None) -> list[Finding]:
    """Look at the installation, and at `config`'s store and judge when there is one."""
    findings = [
        _python(),
        *map(_package, _NEEDED),
        *(_extra(name, extra) for name, extra in _OPTIONAL.items()),
        _temporary(),
    ]
    if config is not None:
        findings += asyncio.run(_configured(config))
    return findings


def _python() -> Finding:
    found = platform.python_version()
    return Finding(
        what="Python",
        good=tuple(map(int, platform.python_version_tuple()[:2])) >= (3, 11),
        found=found,
        mend="use 3.11 or newer",
    )


def _package(name: str) -> Finding:
    try:
        return Finding(what=name, good=True, found=version(name))
    except PackageNotFoundError:
        return Finding(what=name, good=False, found="not installed", mend="pip install adjudge")


def _extra(name: str, extra: str) -> Finding:
    try:
        return Finding(what=f"{name} (optional)", good=True, found=version(name))
    except PackageNotFoundError:
        return Finding(
            what=f"{name} (optional)",
            good=True,
            found="not installed",
            mend=f"pip install 'adjudge[{extra}]' if you want it",
        )


def _temporary() -> Finding:
    folder = tempfile.gettempdir()
    good = os.access(folder, os.W_OK)
    return Finding(
        what="temporary folder", good=good, found=folder, mend="set TMPDIR to a folder you can write"
    )


async def _configured(config: RunConfig) -> list[Finding]:
    return [await _store(config), await _judge(config), _out(config)]


async def _store(config: RunConfig) -> Finding:
    try:
        store = JudgmentStore(Place.of(config.store))
        await store.parts.open()
    except StoreError as error:
        return Finding(
            what="store",
            good=False,
            found=str(error),
            mend="set store: to a folder or URI that you can read and write",
        )
    return Finding(what="store", good=True, found=f"{config.store}: {len(store.parts)} judgments")


async def _judge(config: RunConfig) -> Finding:
    settings = config.judge_config()
    where = settings.url or settings.backend
    try:
        judge = make_judge(settings, make_book(config))
    except ConfigError as error:
        return Finding(what="judge", good=False, found=str(error), mend="mend judge: in the configuration")
    try:
        deadline = asyncio.get_running_loop().time() + 30
        reply = await judge.answer(Probe.make(), Asked(key=bytes(16), deadline=deadline))
    except JudgeError as error:
        return Finding(
            what="judge", good=False, found=str(error), mend="check judge: url and model, and OPENAI_API_KEY"
        )
    finally:
        await judge.close()
    if reply.answer is None:
        return Finding(
            what="judge",
            good=False,
            found=f"{where}: {reply.reason}",
            mend="start the server, or correct judge: url",
        )
    return Finding(what="judge", good=True, found=f"{where} answered in {reply.seconds:.2f} s")


def _out(config: RunConfig) -> Finding:
    folder = Path(config.out)
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    good = os.access(existing, os.W_OK)
    return Finding(what="out", good=good, found=str(folder), mend=f"make {existing} writable, or give --out")
