"""The exported folder of a run: `python -m benchmarks.exporting [--quick] [--json]`.

Creates a run of 20 systems x 100 tasks (quick: 1) whose reports have 20,000 characters, with 40 cited statements judged
by FACT and 25 criteria marked by RACE for each, and 5,000 pages; then writes it with `adjudge view --export` in a
new process. The size counts all files; peak memory is the process's. Nothing else does this work, so the size is
compared with a fixed limit (200 MB).
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from adjudge.engine.runs.record import RunRecord
from adjudge.scoring.contract.scorecard import Evidence, Outcome, Scorecard
from adjudge.scoring.deepresearch_bench.race import Race
from benchmarks import viewer
from benchmarks.timing import Row, alone, main

AIM_BYTES = 200e6
TASKS, QUICK_TASKS = 100, 1
STATEMENTS, CRITERIA, CHARACTERS = 40, 25, 20_000
EXPORT = [sys.executable, "-m", "adjudge.engine", "view"]
DIMENSIONS = ("comprehensiveness", "insight", "instruction_following", "readability")


class World(viewer.World):
    """A run of FACT and RACE; what RACE says of a report is in the same parts as what FACT says."""

    def _report(self, task: str, system: str, at: int) -> tuple[Scorecard, str]:
        card, text = super()._report(task, system, at)
        card = msgspec.structs.replace(
            card,
            evidence=card.evidence[:STATEMENTS],
            judgments=card.judgments[:STATEMENTS],
            pages=card.pages[:STATEMENTS],
        )
        cited = text[: text.index("## References")]
        while len(cited) < CHARACTERS:
            cited += f"\n\n## {self.text(4)}\n\n{' '.join(f'{one}.' for one in self.some(8))}"
        return card, cited

    def _cards(self, cards: list[Scorecard], number: int, at: int) -> None:
        super()._cards(cards, number, at)
        self._rows([self._marked(card) for card in cards], number + 1_000_000, "race", at)

    def _marked(self, card: Scorecard) -> Scorecard:
        evidence = tuple(
            Evidence(
                what=f"{DIMENSIONS[n % 4]}: {self.sentences[int(card.task_id) * CRITERIA + n]}",
                outcome=Outcome("points", 7.5, 10.0, 8.0, "7.5 of 10, reference 8"),
                judgment=card.judgments[0],
                note=" ".join(self.some(3)),
            )
            for n in range(CRITERIA)
        )
        scores: dict[str, float | None] = {metric.name: 0.45 for metric in Race().metrics}
        return msgspec.structs.replace(
            card, protocol="race", scores=scores, evidence=evidence, judgments=card.judgments[:1], pages=()
        )

    def _run(self) -> Path:
        run = super()._run()
        record = RunRecord.read(run)
        metrics = {"race": Race().metrics, **record.metrics}
        msgspec.structs.replace(record, metrics=metrics).write(run)
        return run


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Make the run, then export it."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), QUICK_TASKS if quick else TASKS)
        run, out = world.write(), Path(folder) / "site"
        began = time.perf_counter()
        subprocess.run([*EXPORT, str(run), "--export", str(out)], check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - began
        reports = viewer.SYSTEMS * world.tasks
        written = float(sum(file.stat().st_size for file in out.rglob("*") if file.is_file()))
        aim = AIM_BYTES * world.tasks / TASKS
        yield Row("export: size of the folder", written, aim, "aim", aim / written, "bytes", reports, 1)
        yield alone("export: time", seconds, "s", n=reports)
        peak = 1024.0 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        yield alone("export: peak memory", peak, "bytes", n=reports)


if __name__ == "__main__":
    main(__doc__, rows)
