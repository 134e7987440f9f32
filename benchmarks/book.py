"""The benchmark book: runs all benchmarks, keeps their results, and checks them against floors.

    python -m benchmarks.book run [--quick] [NAME ...]   run benchmarks, write JSON to results/, then the tables
    python -m benchmarks.book                            write README.md from results/
    python -m benchmarks.book pin [--lower]              raise floors to 0.9 of the results; --lower also lowers them

`run` without names runs all benchmarks except those that need vLLM (VLLM_NAMES; `make bench-vllm`). A quick result
replaces no full one: it is printed. floors.json holds the smallest ratio (above 1: ours is better) that each row of the
kept results must reach; quick results are exempt. Checking floors measures nothing.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchmarks import paper_scale
from benchmarks.goals import Goal, goals, table
from benchmarks.kept import NAMES, ON_GPU, VLLM_NAMES, Result, current_commit, keep, load, result, write
from benchmarks.timing import Row

HERE = Path(__file__).parent
FLOORS = HERE / "floors.json"
README = HERE / "README.md"
KEPT = 0.9
AIM = "aim"

Floors = dict[str, dict[str, float]]


def run(name: str, quick: bool) -> Result:
    """Run benchmark `name` in a new process. Raises CalledProcessError if it fails."""
    began, commit = time.monotonic(), current_commit()
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *(["--quick"] if quick else [])]
    done = subprocess.run(command, cwd=HERE.parent, stdout=subprocess.PIPE, check=True)
    return result(
        name, msgspec.json.decode(done.stdout, type=list[Row]), quick=quick, began=began, commit=commit
    )


def floors() -> Floors:
    """The smallest allowed ratios, by benchmark and row."""
    return msgspec.json.decode(FLOORS.read_bytes(), type=Floors)


def below(results: list[Result], least: Floors) -> list[str]:
    """Rows that are missing or below their floor, one line per row."""
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
    """`least` with the floor of every ratio in a full result at KEPT of it; floors fall only if `lower`.

    A fixed limit of time is its row's floor: the ratio to it is the processor's as much as ours.
    """
    raised: Floors = {}
    for one in results:
        if one.quick:
            continue
        rows = {row.name: round(KEPT * row.ratio, 2) for row in one.rows if row.ratio is not None}
        old = {} if lower else least.get(one.benchmark, {})
        aims = {row.name: 1.0 for row in one.rows if row.peer_name == AIM and row.unit == "s"}
        raised[one.benchmark] = {name: max(ratio, old.get(name, 0.0)) for name, ratio in rows.items()} | aims
    return least | raised


def book(results: list[Result], plan: Iterable[str]) -> str:
    """The text of README.md: floors, checks, a table per result, and the lines of the estimate `plan`."""
    parts = [
        "# Benchmarks",
        "Each row compares adjudge (`ours`) with a `peer` that does the same work in the same run; the two alternate, "
        "and the figures are medians. A ratio above 1 means that adjudge is better; `n` is the amount of work. A row "
        "without a peer states a figure alone; the peer `aim` is a fixed limit. The command above a table produced it, "
        "and the JSON file of that name in `benchmarks/results/` records versions and hardware.",
        "`python -m benchmarks.book` writes this file. `make check` fails when a kept ratio is below its entry in "
        "`benchmarks/floors.json`, which is 0.9 of a measured ratio, or the `aim` where that is a time.",
        *_floors(goals().floors, results),
        "## Properties checked by tests",
        "\n".join(
            [
                "| property | command |",
                "|---|---|",
                *(f"| {one.name} | {one.command} |" for one in goals().checks),
            ]
        ),
    ]
    for one in results:
        command = ON_GPU.get(one.benchmark, one.benchmark) + (" --quick" if one.quick else "")
        parts += [
            f"## {one.benchmark}",
            f"`python -m benchmarks.{command}`: {one.seconds:,.0f} s on {one.hardware}; {one.date}, "
            f"commit {one.commit}.",
            "\n".join(_table(one.rows)),
        ]
    parts += ["## Estimate: 1,000 systems x 1,000 tasks under all protocols", "\n".join(plan)]
    return "\n\n".join(parts) + "\n"


def _floors(floors: list[Goal], results: list[Result]) -> list[str]:
    """The section of floors, and why figures are below them."""
    found = {one.benchmark: one for one in results}
    gaps = [goal for goal in floors if goal.gap and not goal.is_reached(found)]
    parts = [
        "## Floors",
        "A floor is the smallest (≥) or largest (≤) value allowed; figures without a floor are only reported. The "
        "words after a command name the row of its table; where they match several rows, the worst counts. A figure "
        "followed by x is a ratio.",
        "\n".join(table(floors, found)),
    ]
    if gaps:
        parts += ["Below the floor:", "\n".join(f"- {goal.name}: {goal.gap}" for goal in gaps)]
    return parts


def _table(rows: list[Row]) -> list[str]:
    lines = ["| row | ours | peer | peer name | ratio | n |", "|---|---:|---:|---|---:|---:|"]
    for row in rows:
        peer = "" if row.peer is None else f"{row.peer:.4g}"
        ratio = "" if row.ratio is None else f"{row.ratio:.3g}"
        ours = f"{row.ours:.4g} {row.unit}".strip()
        lines.append(f"| {row.name} | {ours} | {peer} | {row.peer_name} | {ratio} | {row.n:,} |")
    return lines


def _run_and_keep(name: str, quick: bool) -> bool:
    """Whether the benchmark ran; one that fails has said why, and leaves its earlier result."""
    try:
        found = run(name, quick)
    except subprocess.CalledProcessError:
        return False
    if found.rows and not keep(found):  # one without its data says so, and its earlier rows stay
        print("\n".join([f"{name}, quick: the full result stays kept", *_table(found.rows)]))
    return True


def main() -> int:
    """Run the command line; returns 1 if a benchmark failed or a row is below its floor."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command")
    command = commands.add_parser("run", help="run benchmarks and keep the results")
    command.add_argument("--quick", action="store_true", help="smaller problems, one run; exempt from floors")
    command.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES + VLLM_NAMES)}")
    command = commands.add_parser("pin", help="raise the floors to 0.9 of the results")
    command.add_argument("--lower", action="store_true", help="also lower floors")
    options = parser.parse_args()
    failed: list[str] = []
    if options.command == "run":
        failed = [name for name in options.names or NAMES if not _run_and_keep(name, options.quick)]
    if options.command == "pin":
        write(FLOORS, pinned(load(), floors() if FLOORS.exists() else {}, lower=options.lower))
    results = load()
    README.write_text(book(results, paper_scale.lines(results)), encoding="utf-8")
    wrong = [f"{name}: failed" for name in failed]
    wrong += below(results, floors()) if FLOORS.exists() else []
    print("\n".join(wrong) or f"{len(results)} benchmarks, all floors reached")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
