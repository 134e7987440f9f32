"""What /metrics says, read and checked against the stored tables."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]


def samples(page: str) -> dict[tuple[str, Labels], float]:
    families = list(text_string_to_metric_families(page))
    assert len({family.name for family in families}) == len(families)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def by(found: dict[tuple[str, Labels], float], name: str, *labels: str) -> dict[tuple[str, ...], float]:
    """The non-zero values of `name` by the values of `labels`."""
    total: Counter[tuple[str, ...]] = Counter()
    for (sample, pairs), value in found.items():
        if sample == name:
            given = dict(pairs)
            total[tuple(given[label] for label in labels)] += value
    return {key: value for key, value in total.items() if value}


def rows(store: Path, table: str) -> pa.Table:
    return pa.concat_tables([pq.read_table(file) for file in sorted((store / table).glob("*.parquet"))])


def counted(table: pa.Table, *columns: str) -> dict[tuple[str, ...], int]:
    return dict(
        Counter(
            tuple(row[name] or ("scored" if name == "status" else "") for name in columns)
            for row in table.select([name for name in columns if name in table.column_names]).to_pylist()
        )
    )


def check(found: dict[tuple[str, Labels], float], judgments: pa.Table) -> None:
    """Check that the page matches `judgments`, all asked by one process or cluster."""
    kinds = ("question", "judge", "status", "reason")
    assert by(found, "adjudge_questions_total", *kinds) == counted(judgments, *kinds)
    cached, prompts = (pc.sum(judgments[name]).as_py() for name in ("cached_tokens", "prompt_tokens"))
    generated = pc.sum(judgments["completion_tokens"]).as_py()
    tokens = {("computed",): prompts - cached, ("cached",): cached, ("generated",): generated}
    assert by(found, "adjudge_tokens_total", "kind") == {key: n for key, n in tokens.items() if n}
    for name in ("adjudge_judge_seconds_count", "adjudge_judge_queue_seconds_count"):
        assert by(found, name) == {(): len(judgments)}
    seconds = by(found, "adjudge_judge_seconds_sum")[()]
    assert seconds == pytest.approx(pc.sum(judgments["seconds"]).as_py())
    assert by(found, "adjudge_store_rows_total", "table")["judgments",] == len(judgments)


def check_scorecards(found: dict[tuple[str, Labels], float], out: Path, store: Path) -> None:
    run = pq.read_table(out / "scores.parquet")
    cards = rows(store, "scores")
    cards = cards.filter(pc.equal(cards["run"].cast(pa.string()), cards["run"].cast(pa.string())[-1]))
    told = by(found, "adjudge_scorecards_total", "protocol", "reason")
    assert told == counted(cards, "protocol", "reason")
    scored = by(found, "adjudge_scorecards_total", "protocol", "status")
    names = ["protocol", "system", "task_id", "sample", "repeat"]
    identities = run.group_by(names).aggregate([]).num_rows
    assert sum(scored.values()) == identities == by(found, "adjudge_scorecards_planned")[()]
    assert not by(found, "adjudge_scorecards_in_flight")
