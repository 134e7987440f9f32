"""DR3-Eval's results: `SIZE/MODEL/NNN/eval_METRIC_TIME.json`, one file per report and metric, the latest counts."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from adjudge.engine.formats.dataset import UNREADABLE
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.results.recorded import Recorded, Results, RunToWrite, folder_name, scorecard
from adjudge.scoring.contract.case import Task
from adjudge.scoring.contract.scorecard import Scorecard

__all__ = ["PROTOCOL", "Result", "read", "write"]

PROTOCOL = "dr3"
_FILE = re.compile(r"eval_(?P<metric>[a-z_]+?)(?:_(?P<time>\d{8}_\d{6}))?\.json")
METRICS = {
    "information_recall": "ir",
    "factual_accuracy": "fa_lenient",
    "overall_quality": "dq",
    "format_compliance": "if",
    "citation_coverage": "cc_lenient",
}
"""The code's metrics by our names for the same rules."""
_SIDES = {"long_context": "ir_sc", "source_documents": "ir_uf"}


class Side(msgspec.Struct, frozen=True):
    """The recall of one kind of insights."""

    score: float | None = None
    available: bool = False


class Details(msgspec.Struct, frozen=True):
    """What is read of a metric's details."""

    components: dict[str, Side] = {}
    status: str = ""
    error: str | None = None


class Result(msgspec.Struct, frozen=True):
    """An eval_*.json: a score from 0 to 100; below 0 the metric failed."""

    metric_name: str
    score: float
    details: Details = Details()
    weight: float = 1.0

    @property
    def values(self) -> dict[str, float | None]:
        """Our metrics. Raises ValueError for one that is unknown, or over 100."""
        if self.metric_name not in METRICS:
            raise ValueError(f"unknown metric {self.metric_name!r}; use one of {', '.join(METRICS)}")
        sides = {
            _SIDES[name]: _share(side.score)
            for name, side in self.details.components.items()
            if name in _SIDES and side.available
        }
        failed = self.details.status == "failed"
        return {METRICS[self.metric_name]: None if failed else _share(self.score), **sides}


def _share(score: float | None) -> float | None:
    if score is None or score < 0:
        return None
    if not score <= 100:
        raise ValueError(f"a score of {score:g} is over 100")
    return score / 100


def read(folder: Path, results: Results) -> None:
    """Add the results of every report below `folder`; files that are not results go to its rejected lines."""
    latest: dict[Path, dict[str, tuple[str, Path]]] = {}
    for file in sorted(folder.rglob("eval_*.json")):
        match = _FILE.fullmatch(file.name)
        if match is not None:
            known = latest.setdefault(file.parent, {})
            known[match["metric"]] = max(known.get(match["metric"], ("", file)), (match["time"] or "", file))
    for case, files in latest.items():
        values: dict[str, float | None] = {}
        kept: dict[str, str] = {}
        for metric, (_, file) in sorted(files.items()):
            try:
                content = file.read_bytes()
                text = content.decode()
                values |= msgspec.json.decode(content, type=Result).values
                kept[file.name] = text
            except (OSError, *UNREADABLE) as error:
                results.rejected.append(Rejected.of(file, 0, Result, error))
                values |= {METRICS[metric]: None} if metric in METRICS else {}
        if not kept:
            continue
        parts = [values[name] for name in METRICS.values() if values.get(name) is not None]
        values["average_code"] = (
            sum(part for part in parts if part is not None) / len(parts) if parts else None
        )
        size, system = case.parent.parent.name, case.parent.name
        task = f"{case.name}@{size}"
        card = scorecard((PROTOCOL, system, task, 0), values)
        results.found.append(Recorded(card, msgspec.json.encode(kept).decode(), str(case)))
        results.tasks.setdefault(task, Task(id=task, prompt="", attributes={"size": size}))


def write(run: RunToWrite, out: Path) -> Iterator[Path]:
    """Write a file for each report and metric below `out`; the files written."""
    for (system, sample), cards in run.of(PROTOCOL).items():
        for card in cards:
            task, _, size = card.task_id.partition("@")
            folder = out / (size or "all") / folder_name(system, sample) / folder_name(task, 0)
            for name, text in _files(run, card).items():
                folder.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text, encoding="utf-8")
                yield folder / name


def _files(run: RunToWrite, card: Scorecard) -> dict[str, str]:
    """The files by name: as they were imported, or from the scores."""
    raw = run.rows.get((PROTOCOL, card.system, card.task_id, card.sample))
    if raw is not None:
        return msgspec.json.decode(raw, type=dict[str, str])
    return {
        f"eval_{metric}.json": msgspec.json.format(
            msgspec.json.encode(_result(card, metric)), indent=2
        ).decode()
        for metric, name in METRICS.items()
        if card.scores.get(name) is not None
    }


def _result(card: Scorecard, metric: str) -> dict[str, Any]:
    sides = {side: card.scores.get(name) for side, name in _SIDES.items()}
    components = {
        side: {"score": 100 * value, "details": {}, "available": True}
        for side, value in sides.items()
        if value is not None
    }
    return {
        "metric_name": metric,
        "score": 100 * (card.scores[METRICS[metric]] or 0.0),
        "weight": 1.0,
        "details": {"components": components} if metric == "information_recall" else {},
    }
