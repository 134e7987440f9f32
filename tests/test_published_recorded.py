"""Published calls held against what the benchmarks' own code asked and found on made data (`golden/published/`)."""

from pathlib import Path

import pytest

from tests.record_published import CALLS, NUMBERS, by_code
from tests.recorded import Recording, recorded
from tests.shared_data import reference


def held(found: Recording, expected: Recording) -> None:
    """The same requests, and the same figures where the code has one."""
    assert found.requests == expected.requests
    figures = {name: found.figures.get(name) for name in expected.figures}
    texts = {name: value for name, value in expected.figures.items() if isinstance(value, str | list | dict)}
    assert {name: figures.pop(name) for name in texts} == texts
    numbers = {name: value for name, value in expected.figures.items() if name not in texts}
    assert figures == pytest.approx(numbers, abs=1e-9)


@pytest.mark.parametrize("name", CALLS)
async def test_ours_asks_and_finds_what_the_code_did(name: str, tmp_path: Path) -> None:
    held(await CALLS[name](tmp_path, True), recorded(name))


@pytest.mark.parametrize("name", [*CALLS, *NUMBERS])
def test_code_still_asks_and_finds_what_is_recorded(name: str) -> None:
    reference("")
    assert by_code(name) == recorded(name)
