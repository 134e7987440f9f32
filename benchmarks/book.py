"""The benchmark book: runs all benchmarks, keeps what they found, and holds it against its floors.

    python -m benchmarks.book run [--quick] [NAME ...]   run them; JSON to results/, then the tables
    python -m benchmarks.book                            write README.md from results/
    python -m benchmarks.book pin [--lower]              raise the floors to 0.9 of what was found; lower them only so

`run` without names runs all but those that need vLLM (VLLM_NAMES; `make bench-vllm`). A floor is a least ratio (above
1: ours is better) that a row of the kept results must reach; quick results are held to none. Nothing is timed when
floors are checked.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchmarks import paper_scale
from benchmarks.goals import goals, table
from benchmarks.kept import NAMES, VLLM_NAMES, Result, current_commit, keep, load, result, write
from benchmarks.timing import Row

HERE = Path(__file__).parent
FLOORS = HERE / "floors.json"
README = HERE / "README.md"
KEPT = 0.9

Floors = dict[str, dict[str, float]]


def run(name: str, quick: bool) -> Result:
    """Run benchmark `name` in a process of its own. Raises CalledProcessError if it fails."""
    began, commit = time.monotonic(), current_commit()
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *(["--quick"] if quick else [])]
    done = subprocess.run(command, cwd=HERE.parent, stdout=subprocess.PIPE, check=True)
    return result(
        name, msgspec.json.decode(done.stdout, type=list[Row]), quick=quick, began=began, commit=commit
    )


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


def book(results: list[Result], plan: Iterable[str]) -> str:
    """The tables of README.md, and the lines of the plan for what was not run."""
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
    parts += ["## Planned: 1,000 systems x 1,000 tasks under all protocols", "\n".join(plan)]
    return "\n\n".join(parts) + "\n"


def _table(rows: list[Row]) -> list[str]:
    lines = ["| row | ours | peer | | ratio | of |", "|---|---:|---:|---|---:|---:|"]
    for row in rows:
        peer = "" if row.peer is None else f"{row.peer:.4g}"
        ratio = "" if row.ratio is None else f"{row.ratio:.3g}"
        ours = f"{row.ours:.4g} {row.unit}".strip()
        lines.append(f"| {row.name} | {ours} | {peer} | {row.peer_name} | {ratio} | {row.n:,} |")
    return lines


def main() -> int:
    """Read the command line and do what it says; 1 if a floor is not reached."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command")
    command = commands.add_parser("run", help="run benchmarks and keep what they find")
    command.add_argument(
        "--quick", action="store_true", help="smaller problems, three runs: held to no floor"
    )
    command.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES + VLLM_NAMES)}")
    command = commands.add_parser("pin", help="raise the floors to what was found")
    command.add_argument("--lower", action="store_true", help="let floors fall")
    options = parser.parse_args()
    if options.command == "run":
        for name in options.names or NAMES:
            keep(run(name, options.quick))
    if options.command == "pin":
        write(FLOORS, pinned(load(), floors() if FLOORS.exists() else {}, lower=options.lower))
    results = load()
    README.write_text(book(results, paper_scale.lines(results)), encoding="utf-8")
    wrong = below(results, floors()) if FLOORS.exists() else []
    print("\n".join(wrong) or f"{len(results)} benchmarks, every floor is reached")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
