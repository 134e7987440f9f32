"""Files of human ratings: what is read, and what is refused with its place."""

import csv
from pathlib import Path

import msgspec
import pytest

from adjudge.engine.errors import UsageError
from adjudge.engine.statistics.corrections import HumanRating, read_ratings
from tests.worlds import lines

FIRST = HumanRating(task_id="1", system="a", rater="ann", metric="score", value=3.0)
OTHERS = [
    msgspec.structs.replace(FIRST, **{name: "x"}, value=4.0)
    for name in ("task_id", "system", "rater", "metric")
]


def written(folder: Path, ratings: list[HumanRating], suffix: str) -> Path:
    rows = list(map(msgspec.to_builtins, ratings))
    if suffix == ".jsonl":
        return lines(folder / "human.jsonl", rows)
    with (folder / "human.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return folder / "human.csv"


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_duplicate_rating_counts_once_and_must_not_differ(tmp_path, suffix):
    assert set(read_ratings(written(tmp_path, [FIRST, *OTHERS, FIRST], suffix))) == {FIRST, *OTHERS}
    file = written(tmp_path, [FIRST, *OTHERS, msgspec.structs.replace(FIRST, value=3.5)], suffix)
    places = "2 and 7" if suffix == ".csv" else "1 and 6"
    with pytest.raises(UsageError, match=rf"lines {places}: 'ann' rated score .*'a', task '1'"):
        list(read_ratings(file))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_byte_order_mark_is_ignored(tmp_path, suffix):
    file = written(tmp_path, [FIRST], suffix)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert list(read_ratings(file)) == [FIRST]


def test_line_separators_inside_a_string_do_not_end_a_line(tmp_path):
    rating = msgspec.structs.replace(FIRST, system="a\u2028b\u2029c\x85d")
    assert list(read_ratings(written(tmp_path, [rating], ".jsonl"))) == [rating]


@pytest.mark.parametrize("content", [b"[" * 200_000, b"{broken", b"\xff", b"[1]", b'{"value": 1}'])
def test_invalid_rating_is_an_error_that_names_the_file(tmp_path, content):
    (tmp_path / "human.jsonl").write_bytes(content + b"\n")
    with pytest.raises(UsageError, match=r"human\.jsonl"):
        list(read_ratings(tmp_path / "human.jsonl"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("1,wren,ann,score,1\n2,wren,ann,score,high\n", "human.csv:3: value: must be a number, not a text"),
        ("1,wren,ann,score,nan\n", "human.csv:2: value: must be a finite number"),
        ("1,wren\n", "human.csv:2: "),
    ],
)
def test_invalid_rating_is_named_by_its_line(tmp_path, content, said):
    (tmp_path / "human.csv").write_text(f"task_id,system,rater,metric,value\n{content}")
    with pytest.raises(UsageError, match=said):
        list(read_ratings(tmp_path / "human.csv"))
    (tmp_path / "human.jsonl").write_text('\n{"task_id": "1"}\n')
    with pytest.raises(UsageError, match=r"human\.jsonl:2: lacks system:, which must be given"):
        list(read_ratings(tmp_path / "human.jsonl"))


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_are_read(tmp_path, separator):
    file = written(tmp_path, [FIRST], ".csv")
    file.write_text(file.read_text().replace(",", separator))
    assert list(read_ratings(file)) == [FIRST]


MARKS = {"Comprehensiveness": 7.5, "Insight": 6, "Instruction-Following": 8, "Readability": 9.0}


def test_race_annotations_are_ratings(tmp_path):
    """DeepResearch Bench's own file: each line holds one person's marks of all systems."""
    rows = [
        {"id": 1, "annotation_id": "x", "dimension_scores": {"a": MARKS, "b": MARKS}},
        {"id": 1, "annotation_id": "y", "dimension_scores": {"a": MARKS}, "overall_scores": {"a": 7}},
    ]
    found = list(read_ratings(lines(tmp_path / "human_RACE_annotation.jsonl", rows)))
    assert {one.rater for one in found} == {"annotator 1", "annotator 2"}
    assert [one.metric for one in found[:4]] == [
        "race.comprehensiveness",
        "race.insight",
        "race.instruction_following",
        "race.readability",
    ]
    assert found[-1] == HumanRating(
        task_id="1", system="a", rater="annotator 2", metric="race.overall", value=7.0
    )


@pytest.mark.parametrize(
    "scores", [{"a": {"Insight": "high"}}, {"a": 7}, [], {"a": {"Insight": 1e999}}], ids=str
)
def test_invalid_annotation_is_an_error_that_names_its_place(tmp_path, scores):
    file = lines(tmp_path / "human.jsonl", [{"id": 1, "dimension_scores": scores}])
    with pytest.raises(UsageError, match=r"human\.jsonl"):
        list(read_ratings(file))
