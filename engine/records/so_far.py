"""What a run that has not finished can say: its scores on the tasks that are complete, marked as provisional."""

import time

import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.records.matrices import alone
from adjudge.engine.records.record import Due, RunRecord
from adjudge.engine.store.scorecards import RIVAL

__all__ = ["provisional", "settled", "state_of"]

_CARD = ["protocol", "system", "task_id", "sample", "repeat"]


def state_of(record: RunRecord) -> str:
    """How the run stands, in words: at work, stopped and why, or finished."""
    if record.state == "running":
        return "still running"
    if record.state == "finished":
        return "finished"
    at = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(record.ended))
    return f"stopped at {at}: {record.why}; run the same command again to continue"


def provisional(record: RunRecord, scores: pa.Table) -> str:
    """What a reader must know of the score rows of a run that has not finished; "" of one that has."""
    if record.due is None:
        return ""
    return f"provisional: {_cards(scores):,} of {record.due.scorecards:,} scorecards; {state_of(record)}"


def settled(record: RunRecord, scores: pa.Table) -> tuple[pa.Table, str]:
    """The rows of tasks that have all their scorecards under a protocol, and what to say of the rest.

    What has not come yet is neither good nor bad: no system gains by being early or late. Comparisons stay as they are.
    Rows of a run that has finished are all there, and nothing is said.
    """
    if record.due is None:
        return scores, ""
    complete = _complete(record.due, record.config.repeats, scores)
    kept = scores.filter(complete)
    tasks = len(pc.unique(alone(kept)["task_id"]))
    on = f"standings are over the {tasks:,} of {len(record.tasks):,} tasks that are done for every system"
    return kept, f"{provisional(record, scores)}; {on}"


def _cards(scores: pa.Table) -> int:
    """How many scorecards have rows."""
    names = [*_CARD, *([RIVAL] if RIVAL in scores.column_names else [])]
    return len(scores.group_by(names).aggregate([]))


def _complete(due: Due, repeats: int, scores: pa.Table) -> pa.Array:
    """Which rows belong to a task and protocol of which nothing is due any more, or to a comparison."""
    cards = alone(scores).group_by(_CARD).aggregate([]).group_by(["protocol", "task_id"])
    counted = cards.aggregate([("system", "count")]).to_pylist()
    done = {
        (one["protocol"], one["task_id"])
        for one in counted
        if one["system_count"] >= due.tasks.get(one["task_id"], 0) * repeats
    }
    protocols = sorted({protocol for protocol, _ in done})
    kept = pc.is_valid(scores[RIVAL]) if RIVAL in scores.column_names else pa.repeat(False, len(scores))
    for name in protocols:
        tasks = pa.array([task for protocol, task in done if protocol == name], pa.string())
        own = pc.equal(pc.cast(scores["protocol"], pa.string()), name)
        kept = pc.or_(kept, pc.and_(own, pc.is_in(pc.cast(scores["task_id"], pa.string()), tasks)))
    return kept
