"""The benchmark book: runs all benchmarks, keeps what they found, and holds it against its floors.

    python -m benchmarks.book run [--quick] [NAME ...]   run them; JSON to results/, then the tables
    python -m benchmarks.book                            write README.md from results/
    python -m benchmarks.book pin [--lower]              raise the floors to 0.9 of what was found; lower them only so

`run` without names runs all but those that need vLLM (VLLM_NAMES; `make bench-vllm`). A floor is a least ratio (above
1: ours is better) that a row of the kept results must reach; quick results are held to none. Nothing is timed when
floors are checked.
"""

import argparse
import datetime
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from benchmarks.goals import goals, table
from benchmarks.timing import Row, machine

NAMES = (
    "kernels",
    "leaderboard",
    "orchestration",
    "fetch",
    "store",
    "scale",
    "recompute",
    "pipeline",
    "rewards",
    "peers",
    "viewer",
    "calibration",
    "mutants",
)
VLLM_NAMES = ("prefix", "repeatability", "routing_vllm", "rewards_vllm", "peers_vllm")
HERE = Path(__file__).parent
RESULTS = HERE / "results"
FLOORS = HERE / "floors.json"
README = HERE / "README.md"
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
)
KEPT = 0.9

Floors = dict[str, dict[str, float]]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one benchmark, and where it ran. `seconds` is the whole of it."""

    benchmark: str
    quick: bool
    date: str
    commit: str
    hardware: str
    versions: dict[str, str]
    seconds: float
    rows: list[Row]


def run(name: str, quick: bool) -> Result:
    """Run benchmark `name` in a process of its own. Raises CalledProcessError if it fails."""
    began = time.monotonic()
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *(["--quick"] if quick else [])]
    done = subprocess.run(command, cwd=HERE.parent, stdout=subprocess.PIPE, check=True)
    return result(name, msgspec.json.decode(done.stdout, type=list[Row]), quick=quick, began=began)


def result(name: str, rows: list[Row], *, quick: bool, began: float, accelerator: str = "") -> Result:
    """`rows` of benchmark `name`, begun at `began` of the monotonic clock, with this machine and what it runs."""
    hardware = f"{machine()}, {_memory():.0f} GB"
    return Result(
        benchmark=name,
        quick=quick,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        commit=_commit(),
        hardware=f"{accelerator}, {hardware}" if accelerator else hardware,
        versions=_versions(),
        seconds=round(time.monotonic() - began, 1),
        rows=rows,
    )


def keep(one: Result) -> None:
    """Write it to results/."""
    _write(RESULTS / f"{one.benchmark}.json", one)


def load() -> list[Result]:
    """The kept results, in the order of the book."""
    files = {path.stem: path for path in RESULTS.glob("*.json")}
    order = [*NAMES, *VLLM_NAMES, *sorted(set(files) - {*NAMES, *VLLM_NAMES})]
    return [msgspec.json.decode(files[name].read_bytes(), type=Result) for name in order if name in files]


def floors() -> Floors:
    """Least ratios, by benchmark and row."""
    return msgspec.json.decode(FLOORS.read_bytes(), type=Floors)


def below(results: list[Result], least: Floors) -> list[str]:
    """What is missing or under its floor, a line each."""
    found = {(one.benchmark, row.name): row.ratio for one in results for row in one.rows}
    quick = {one.benchmark for one in results if one.quick}
    wrong = []
    for benchmark, rows in least.items():
        if benchmark in quick:
            continue
        for name, floor in rows.items():
            ratio = found.get((benchmark, name))
            if ratio is None or ratio < floor:
                wrong.append(
                    f"{benchmark}: {name}: {'missing' if ratio is None else f'{ratio:.3g}'}, floor {floor:g}"
                )
    return wrong


def pinned(results: list[Result], least: Floors, *, lower: bool) -> Floors:
    """`least` with every ratio's floor at KEPT of what was found in full; a floor falls only if `lower`."""
    raised: Floors = {}
    for one in results:
        if one.quick:
            continue
        rows = {row.name: round(KEPT * row.ratio, 2) for row in one.rows if row.ratio is not None}
        old = least.get(one.benchmark, {})
        raised[one.benchmark] = {
            name: ratio if lower else max(ratio, old.get(name, 0.0)) for name, ratio in rows.items()
        }
    return least | raised


def book(results: list[Result]) -> str:
    """The tables of README.md."""
    parts = [
        "# What was measured",
        "Both sides of a row do the same work in the same run, alternating; the figures are medians. A ratio above 1 "
        "means that ours is better. Each table was printed by the command above it; the JSON beside it says on what. "
        "Written by `python -m benchmarks.book`; `floors.json` holds the ratios below which `make check` fails.",
    ]
    found = {one.benchmark: one.rows for one in results}
    parts += ["## Asked and measured", "\n".join(table(goals(), found))]
    for one in results:
        quick = " --quick" if one.quick else ""
        parts += [
            f"## {one.benchmark}",
            f"`python -m benchmarks.{one.benchmark}{quick}`: {one.seconds:,.0f} s on {one.hardware}; {one.date}, "
            f"commit {one.commit}.",
            "\n".join(_table(one.rows)),
        ]
    return "\n\n".join(parts) + "\n"


def _table(rows: list[Row]) -> list[str]:
    lines = ["| row | ours | peer | | ratio | of |", "|---|---:|---:|---|---:|---:|"]
    for row in rows:
        peer = "" if row.peer is None else f"{row.peer:.4g}"
        ratio = "" if row.ratio is None else f"{row.ratio:.3g}"
        ours = f"{row.ours:.4g} {row.unit}".strip()
        lines.append(f"| {row.name} | {ours} | {peer} | {row.peer_name} | {ratio} | {row.n:,} |")
    return lines


def _commit() -> str:
    """The commit, and whether what it measures was changed since: the book itself, written by each run, is not."""
    git = ("git", "-C", str(HERE), "describe", "--always")
    changed = ("git", "-C", str(HERE), "diff", "--quiet", "HEAD", "--", "..", ":!README.md", ":!results")
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


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value)) + b"\n")


def main() -> int:
    """Read the command line and do what it says; 1 if a floor is not reached."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command")
    command = commands.add_parser("run", help="run benchmarks and keep what they find")
    command.add_argument("--quick", action="store_true", help="smaller problems, one run: held to no floor")
    command.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES + VLLM_NAMES)}")
    command = commands.add_parser("pin", help="raise the floors to what was found")
    command.add_argument("--lower", action="store_true", help="let floors fall")
    options = parser.parse_args()
    if options.command == "run":
        for name in options.names or NAMES:
            keep(run(name, options.quick))
    if options.command == "pin":
        _write(FLOORS, pinned(load(), floors() if FLOORS.exists() else {}, lower=options.lower))
    results = load()
    README.write_text(book(results), encoding="utf-8")
    wrong = below(results, floors()) if FLOORS.exists() else []
    print("\n".join(wrong) or f"{len(results)} benchmarks, every floor is reached")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
