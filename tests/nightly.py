"""Tests marked `nightly` run in a quick form in `make test`, and whole in `make nightly`.

@pytest.mark.nightly
def test_alarms() -> None:
    pairs = quick_or_whole(100, 400)

Properties are marked by `tests.conftest`. Without `max_examples` they draw 30 examples, and 100 in `make nightly`.
"""

import os
from typing import TypeVar

Size = TypeVar("Size")
WHOLE = os.environ.get("ADJUDGE_TESTS") == "whole"


def quick_or_whole(quick: Size, whole: Size) -> Size:
    """What a test takes today: `whole` in `make nightly`, `quick` elsewhere."""
    return whole if WHOLE else quick
