"""Tests marked `nightly` run in a quick form in `make test`, and whole in `make nightly`.

@pytest.mark.nightly
@settings(max_examples=quick_or_whole(3, 12))
"""

import os
from typing import TypeVar

Size = TypeVar("Size")
WHOLE = os.environ.get("ADJUDGE_TESTS") == "whole"


def quick_or_whole(quick: Size, whole: Size) -> Size:
    """What a test takes today: `whole` in `make nightly`, `quick` elsewhere."""
    return whole if WHOLE else quick
