"""A leaderboard's files: leaderboard.json, .csv, .parquet, .md and .html.

Where systems are too many to list every pair and every share of a rank, two more Parquet files hold them.
"""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.engine.errors import UsageError, unwritable
from adjudge.engine.runs.board import Corrected, Leaderboard, MetricBoard, Standing, only_in_parquet
from adjudge.engine.tables.markdown import leaderboard_markdown
from adjudge.engine.tables.page import leaderboard_page
from adjudge.engine.tables.spreadsheet import plain_cell
from adjudge.engine.tables.standings import words_of
from adjudge.fetchers.files import own_files, write_whole

_COLUMNS = tuple(
    name for name in Standing.__struct_fields__ if name not in ("unscored", "corrected", "signs")
)
_KINDS = {"system": pa.string(), "tier": pa.int32(), "flagged": pa.bool_()}
_SCHEMA = pa.schema(
    {
        **dict.fromkeys(("protocol", "metric", "over", "attribute", "group"), pa.string()),
        "tasks": pa.int64(),
        **{
            name: _KINDS.get(name, pa.int64() if name.startswith("n_") else pa.float64()) for name in _COLUMNS
        },
        "unscored": pa.string(),
        "signs": pa.string(),
    }
)
_CORRECTED = Corrected.__struct_fields__


def write_leaderboard(board: Leaderboard, folder: str | Path) -> Path:
    """Write the files into `folder`, in place of any there; return the path of the page. Raises UsageError."""
    out = Path(folder)
    files = {
        "leaderboard.json": msgspec.json.format(
            msgspec.json.encode(board, enc_hook=only_in_parquet), indent=1
        ),
        "leaderboard.csv": _csv(board).encode("utf-8", "replace"),
        "leaderboard.parquet": _parquet(board),
        "leaderboard.md": leaderboard_markdown(board).encode("utf-8", "replace"),
        "leaderboard.html": leaderboard_page(board).encode(),
        **dict(_every(board)),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_whole(out / name, content)
    except OSError as error:
        raise UsageError(f"out: {out} cannot be written: {error.strerror}; choose another folder") from error
    return out / "leaderboard.html"


def write_own_leaderboard(board: Leaderboard, folder: str | Path) -> Path:
    """Write the files into `folder`, but in place of files that this made alone. Raises UsageError."""
    try:
        with own_files(Path(folder), remember=True) as new:
            page = write_leaderboard(board, new)
    except OSError as error:
        raise UsageError(f"out: {unwritable(error, folder)}") from error
    return Path(folder) / page.name


def _every(board: Leaderboard) -> Iterator[tuple[str, bytes]]:
    """The files with every pair and every share of a rank of the metrics whose systems are many, if there are any."""
    many = [(metric, metric.detail) for metric in board.metrics if metric.detail and metric.detail.more_pairs]
    for kind, column in (("pairs", "every_pair"), ("ranks", "every_rank")):
        tables = [
            _named(metric, table)
            for metric, detail in many
            if (table := getattr(detail, column)) is not None  # None in a leaderboard read from its JSON
        ]
        if tables:
            yield f"leaderboard.{kind}.parquet", _written(pa.concat_tables(tables))


def _named(metric: MetricBoard, table: pa.Table) -> pa.Table:
    """`table` with the metric's names in its first columns."""
    for name, said in (("metric", metric.metric), ("protocol", metric.protocol)):
        table = table.add_column(0, name, pa.array([said] * len(table), pa.string()))
    return table


def _written(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()


def _parquet(board: Leaderboard) -> bytes:
    """The figures of every system under every metric: over all tasks, in every group, and as the mean over groups."""
    places: list[tuple[str, str, Sequence[MetricBoard]]] = [("all", "", board.metrics)]
    of: list[str] = [""]
    for grouping in board.groupings:
        places += [("group", group.name, group.metrics) for group in grouping.groups]
        places.append(("mean over groups", "", grouping.mean))
        of += [grouping.attribute] * (len(grouping.groups) + 1)
    rows = [
        {
            "protocol": metric.protocol,
            "metric": metric.metric,
            "over": over,
            "attribute": attribute,
            "group": group,
            "tasks": metric.n_tasks,
            **{name: getattr(row, name) for name in _COLUMNS},
            "unscored": json.dumps(row.unscored),
            "signs": words_of(row),
        }
        for attribute, (over, group, metrics) in zip(of, places, strict=True)
        for metric in metrics
        for row in metric.standings
    ]
    return _written(pa.Table.from_pylist(rows, _SCHEMA))


def _csv(board: Leaderboard) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    corrected = [name if name.startswith("n_") else f"corrected_{name}" for name in _CORRECTED]
    writer.writerow(["protocol", "metric", *_COLUMNS, "unscored", *corrected, "signs"])
    for metric in board.metrics:
        for row in metric.standings:
            reasons = " ".join(f"{reason}={count}" for reason, count in row.unscored.items())
            own = [_text_cell(getattr(row, name)) for name in _COLUMNS]
            people = [None if row.corrected is None else getattr(row.corrected, name) for name in _CORRECTED]
            names = _text_cell(metric.protocol), _text_cell(metric.metric)
            writer.writerow([*names, *own, reasons, *people, _text_cell(words_of(row))])
    return text.getvalue()


def _text_cell(value: object) -> object:
    """`value`; a text in one line, and as no formula."""
    return plain_cell(value).replace("\r", " ") if isinstance(value, str) else value
