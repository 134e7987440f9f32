"""Rows that wait for their part as columns: each can be found, the ones that no file can hold are left out."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.engine.store.judgments import JUDGMENTS, JudgmentRow
from adjudge.engine.store.rows import Columns

FULL = 256  # rows that become columns at a time
UNSTORABLE = 2**31  # more tokens than the column holds


def row(number: int, tokens: int = 0) -> JudgmentRow:
    key, group = number.to_bytes(16, "big"), bytes(16)
    spent = (tokens, 0, 7, 0.5)
    return JudgmentRow(
        key,
        group,
        "Kind",
        "{}",
        "scored",
        None,
        f"Text {number}.",
        "stop",
        *spent,
        "judge",
        "adjudge",
        number,
    )


@settings(max_examples=30, deadline=None)
@given(count=st.integers(1, 3 * FULL), lost=st.sets(st.integers(0, 3 * FULL - 1), max_size=5))
def test_every_row_is_found_where_it_came(count, lost):
    lost = {at for at in lost if at < count}
    columns = Columns(JUDGMENTS)
    rows = [row(at, UNSTORABLE if at in lost else at) for at in range(count)]
    for each in rows:
        columns.add(each)
    assert len(columns) == count
    whole = count - count % FULL
    for at in range(count):  # those that are not yet columns are as they came
        assert columns[at] == (None if at in lost and at < whole else rows[at])
    table = columns.table()
    assert columns.lost == sorted(lost)
    assert table["key"].to_pylist() == [each.key for at, each in enumerate(rows) if at not in lost]
    assert [columns[at] for at in range(count)] == [None if at in lost else rows[at] for at in range(count)]


class Overtaken(list):
    """Batches that another thread adds to while somebody asks how many they are."""

    overtake: Callable[[], object] | None = None

    def __len__(self):
        count, meanwhile = super().__len__(), self.overtake
        self.overtake = None
        if meanwhile is not None:
            meanwhile()
        return count


def test_row_is_found_while_its_columns_are_made():
    columns = Columns(JUDGMENTS)
    columns.add(row(1))
    columns._batches = batches = Overtaken()
    batches.overtake = columns.table
    assert columns[0] == row(1)
    assert list(batches) and columns[0] == row(1)
