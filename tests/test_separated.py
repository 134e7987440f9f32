"""Every table that people hand over may be separated by commas, semicolons or tabs, as spreadsheets write it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from adjudge.engine.formats.dataset import load_dataset
from adjudge.engine.runs.items import read_labels
from adjudge.engine.statistics.corrections import read_ratings
from adjudge.engine.statistics.published import read_published
from adjudge.fetchers.separated import separator_of
from adjudge.scoring.rubrics.criteria import CriteriaError, load_criteria
from tests.layouts import own


def _reports(file: Path) -> object:
    (report,) = load_dataset("adjudge", str(own(file.parent / "tasks")), [str(file)]).reports
    return report.task_id, report.system, report.load().text


READERS: dict[str, tuple[list[list[str]], Callable[[Path], object], object]] = {
    "reports": ([["task_id", "system", "text"], ["1", "a", "Red."]], _reports, ("1", "a", "Red.")),
    "criteria": (
        [["criterion", "points"], ["Is it red?", "2"]],
        lambda file: [(one.criterion, one.points) for one in load_criteria(str(file))],
        [("Is it red?", 2.0)],
    ),
    "labels": (
        [["item", "label", "note"], ["v1", "yes", "It is."]],
        lambda file: [(one.item, one.label, one.note) for one in read_labels(file)],
        [("v1", "yes", "It is.")],
    ),
    "ratings": (
        [["task_id", "system", "rater", "metric", "value"], ["1", "a", "ann", "race.overall", "3"]],
        lambda file: [(one.system, one.value) for one in read_ratings(file)],
        [("a", 3.0)],
    ),
    "published figures": (
        [["system", "metric", "value"], ["a", "race.overall", "41.5"]],
        lambda file: [(one.system, one.metric, one.value) for one in read_published(file)],
        [("a", "race.overall", 41.5)],
    ),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("separator", [",", ";", "\t"], ids=["commas", "semicolons", "tabs"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "marked"])
def test_tables_are_read_whatever_separates_them(
    name: str, separator: str, mark: str, tmp_path: Path
) -> None:
    rows, read, expected = READERS[name]
    file = tmp_path / "table.csv"
    file.write_text(mark + "".join(f"{separator.join(row)}\n" for row in rows))
    assert read(file) == expected


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ('"Is it red, wide, and long?";points\n', ";"),
        ('"two\nlines, and more, of it";points\n1,2,3,4', ";"),
        ("\n\na\tb\n", "\t"),
        ("one column\n", ","),
        ('"never closed; a, b', ","),
    ],
)
def test_quoted_headings_do_not_decide(text: str, separator: str) -> None:
    assert separator_of(text) == separator
    assert separator_of(text, ".TSV") == "\t"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.csv", "criterion,points\nIs it red?,nan\n"),
        ("c.yaml", '- {criterion: "Is it red?", points: .nan}\n'),
        ("c.yaml", '- {criterion: "Is it red?", points: .inf}\n'),
        ("c.yaml", '- {criterion: "Is it red?", values: [0, .nan, 2], points: 2}\n'),
    ],
)
def test_criteria_without_a_number_of_points_say_so(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(CriteriaError, match="must be finite numbers, not NaN or infinity"):
        load_criteria(str(tmp_path / name))
