"""Where the golden cases are, for tests that need them."""

import os
from pathlib import Path

import pytest

GOLDEN = Path(__file__).resolve().parents[2] / "shared" / "golden"


def golden(name: str) -> Path:
    """The golden file or folder `name`; without it the test is skipped, except in CI, where it fails."""
    path = GOLDEN / name
    if not path.exists():
        if os.environ.get("CI"):
            pytest.fail(f"{path} is missing, and CI needs it")
        pytest.skip(f"needs the golden cases: {path} is not there")
    return path
