"""Where test data lies: the golden cases of this checkout, and published texts that it does not hold.

`ADJUDGE_SHARED` names a folder with texts that others wrote (reports, criteria, recorded pages) and the results
published with them. Without the variable, tests that need such a file are skipped; with it, a missing file fails them.
"""

import os
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def shared_folder() -> Path | None:
    """The folder of published texts; None if `ADJUDGE_SHARED` is unset or empty."""
    name = os.environ.get("ADJUDGE_SHARED")
    return Path(name) if name else None


def shared(name: str) -> Path:
    """The file or folder `name` among the published texts, for a test; skips it without `ADJUDGE_SHARED`."""
    folder = shared_folder()
    if folder is None:
        pytest.skip(f"ADJUDGE_SHARED is unset: set it to the folder that holds {name}")
    path = folder / name
    if not path.exists():
        pytest.fail(
            f"{path}: no such file or folder; set ADJUDGE_SHARED to the folder that holds {name}, or unset it"
        )
    return path
