"""A run against what people preferred, through the command line and its file."""

import json
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adjudge.engine.errors import UsageError
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.statistics.agreement import read_preferences, with_preferences
from tests.commands import run
from tests.made_runs import made_run
from tests.worlds import lines

SYSTEMS = ("able", "baker", "charlie")


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Ten tasks; able scores 0.8, baker 0.5, charlie 0.2, but on task 9 the other way round."""
    folder = made_run(tmp_path / "run", SYSTEMS, 10, missing=0)
    rows = pq.read_table(folder / "scores.parquet")
    values = [
        0.5 + (0.3 if (system == "able") == (task != "9") else -0.3) * (system != "baker")
        for system, task in zip(rows["system"].to_pylist(), rows["task_id"].to_pylist(), strict=True)
    ]
    pq.write_table(
        rows.set_column(rows.column_names.index("value"), "value", pa.array(values)),
        folder / "scores.parquet",
    )
    return folder


def line(task: str, chosen: list[str], rejected: list[str], **fields: str) -> dict[str, object]:
    return {"task_id": task, "chosen": chosen, "rejected": rejected, **fields}


def test_accuracy_is_given_for_every_metric(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = [
        line(str(task), ["able"], ["baker", "charlie"], subset="hard" if task == 9 else "")
        for task in range(10)
    ]
    sets.append(line("1", ["able"], ["nobody"]))
    file = lines(tmp_path / "chosen.jsonl", sets)
    code, out, _ = run(capsys, "agreement", made, "--preferences", file, "--json")
    found = {(one["protocol"], one["metric"]): one for one in json.loads(out)}
    race = found["race", "overall"]
    assert code == 0
    assert race["overall"] == {
        "best_of": 0.9,
        "pairwise": 0.9,
        "tied": 0,
        "n_total": 11,
        "n_scored": 10,
        "n_unscored": 1,
    }
    assert race["low"] < 0.9 < race["high"] <= 1
    assert race["chance"] == pytest.approx((10 / 3 + 1 / 2) / 11)
    assert race["subsets"]["hard"]["best_of"] == 0
    assert race["ties"] is None
    code, out, _ = run(capsys, "agreement", made, "--preferences", file, "--markdown")
    assert code == 0 and "| race.overall | all | 0.900" in out and "|  | hard | 0.000" in out


def test_lower_is_better_follows_the_metric(made: Path, tmp_path: Path) -> None:
    record = RunRecord.read(made)
    turned = tuple(msgspec.structs.replace(one, lower_is_better=True) for one in record.metrics["race"])
    msgspec.structs.replace(record, metrics={**record.metrics, "race": turned}).write(made)
    file = lines(tmp_path / "chosen.jsonl", [line("1", ["charlie"], ["able", "baker"])])
    found = {(one.protocol, one.metric): one.overall.best_of for one in with_preferences(made, file)}
    assert found["race", "overall"] == 1
    assert found["fact", "judged"] == 0


def test_ties_are_scored(made: Path, tmp_path: Path) -> None:
    sets = [
        line("1", ["able"], ["charlie"], pair="ref:x"),
        line("1", ["able", "baker"], ["charlie"], pair="tied:x"),
    ]
    (ties, *_) = (one.ties for one in with_preferences(made, lines(tmp_path / "chosen.jsonl", sets)))
    assert ties is not None
    assert (ties.n_pairs, ties.ref, ties.tied) == (1, 1, 1)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "no preferences"),
        ("\n{", ":2: "),
        ("[" * 100_000, ":1: "),
        ('{"task_id": "1", "chosen": ["a"]}', "rejected"),
        ('{"task_id": "1", "chosen": [], "rejected": ["b"]}', "length >= 1"),
        ('{"task_id": "1", "chosen": ["a"], "rejected": ["b"], "pair": "tie:1"}', "pair"),
        ('{"task_id": "1", "chosen": ["a"], "rejected": ["b"], "chose": 1}', "chose"),
        (
            '{"task_id": "1", "chosen": ["a"], "rejected": [{"system": "a"}]}',
            "'a' is named 2 times",
        ),
        ('{"task_id": "1", "chosen": ["a", "b"], "rejected": ["c", "c"]}', "'c' is named 2 times"),
        (
            '{"task_id": "1", "chosen": ["a"], "rejected": ["b"], "pair": "ref:1"}\n' * 2,
            "line 1 has pair 'ref:1'",
        ),
    ],
)
def test_invalid_file_is_refused_with_a_reason(tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "chosen.jsonl").write_text(text)
    with pytest.raises(UsageError) as error:
        read_preferences(tmp_path / "chosen.jsonl")
    assert word in str(error.value)


def test_samples_are_distinguished(tmp_path: Path) -> None:
    (one,) = read_preferences(
        lines(
            tmp_path / "chosen.jsonl",
            [{"task_id": "1", "chosen": ["a"], "rejected": [{"system": "a", "sample": 1}]}],
        )
    )
    assert (one.chosen[0].sample, one.rejected[0].sample) == (0, 1)


def test_preferences_about_other_reports_are_an_error(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lines(tmp_path / "chosen.jsonl", [line("1", ["able"], ["nobody"])])
    code, _, error = run(capsys, "agreement", made, "--preferences", file)
    assert code == 2 and "no set in" in error
    code, _, error = run(capsys, "agreement", made, "--preferences", tmp_path / "none.jsonl")
    assert code == 2 and "cannot be read" in error
