"""Modules that a trainer's reward path imports and a machine without a GPU lacks, as empty shells.

docs/rewards/ says for each trainer what of it is a stub.
"""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.shared_data import shared


def stub(monkeypatch: pytest.MonkeyPatch, name: str, **members: object) -> None:
    """Put a module of these members in the place of `name`, until the test ends."""
    module = ModuleType(name)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)


def from_reference(monkeypatch: pytest.MonkeyPatch, trainer: str, package: str) -> None:
    """Import `package` from the pinned files of `trainer`, in place of another one; skips without ADJUDGE_SHARED."""
    folder: Path = shared(f"reference/trainers/{trainer}")
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(folder)
