"""Recorded runs beside runs of our own: whose results they are stands in the names of their systems."""

from collections.abc import Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.records.record import RunRecord

__all__ = ["told_apart"]


def told_apart(records: Sequence[RunRecord], tables: Sequence[pa.Table]) -> tuple[list[RunRecord], pa.Table]:
    """The runs in `records` with their score rows, one after the other, recorded systems named as such."""
    pairs = [_marked(*pair) for pair in zip(records, tables, strict=True)]
    return [record for record, _ in pairs], pa.concat_tables(
        [table for _, table in pairs], promote_options="default"
    )


def _marked(record: RunRecord, scores: pa.Table) -> tuple[RunRecord, pa.Table]:
    if not record.recorded:
        return record, scores
    ending = f" (recorded, {record.judge.name})"
    names = pc.cast(scores["system"], pa.string())
    systems = pc.cast(pc.binary_join_element_wise(names, ending, ""), scores["system"].type)
    named = msgspec.structs.replace(
        record,
        systems=[name + ending for name in record.systems],
        spent={name + ending: spent for name, spent in record.spent.items()},
    )
    return named, scores.set_column(scores.column_names.index("system"), "system", systems)
