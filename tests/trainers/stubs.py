"""Modules that a trainer's reward path imports and a machine without a GPU lacks, as empty shells.

docs/rewards/ says for each trainer what of it is a stub.
"""

import sys
from types import ModuleType

import pytest

from tests.shared_data import reference


def stub(monkeypatch: pytest.MonkeyPatch, name: str, **members: object) -> None:
    """Put a module of these members in the place of `name`, until the test ends."""
    module = ModuleType(name)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)


def from_reference(monkeypatch: pytest.MonkeyPatch, repository: str, package: str) -> None:
    """Import `package` from a checkout of `repository`, in place of another one; skips without ADJUDGE_REFERENCE.

    Its `__init__` is not run: NeMo-Gym's changes the environment and the path that Python imports from.
    """
    replace(monkeypatch, package, __path__=[str(reference(f"{repository}/{package}"))])


def replace(monkeypatch: pytest.MonkeyPatch, package: str, **members: object) -> None:
    """Put a package of these members in the place of `package` and of all that was imported from it."""
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    stub(monkeypatch, package, **members)
