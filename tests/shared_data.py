"""Where test data lies: the golden cases of this checkout, and published texts and code that it does not hold.

`ADJUDGE_SHARED` names a folder with texts that others wrote (reports, criteria, recorded pages) and the results
published with them. `ADJUDGE_REFERENCE` names a folder with the code of the benchmarks: a checkout of each public
repository under the repository's own name. Tests that need such a file are skipped without the variable; with it, a
missing file fails them.
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
    return _within("ADJUDGE_SHARED", name)


def reference(name: str) -> Path:
    """The file or folder `name` (`REPOSITORY/...`) in the benchmarks' own code; skips without `ADJUDGE_REFERENCE`."""
    return _within("ADJUDGE_REFERENCE", name)


def _within(variable: str, name: str) -> Path:
    folder = os.environ.get(variable)
    if not folder:
        pytest.skip(f"{variable} is unset: set it to the folder that holds {name}")
    path = Path(folder) / name
    if not path.exists():
        pytest.fail(
            f"{path}: no such file or folder; set {variable} to the folder that holds {name}, or unset it"
        )
    return path
