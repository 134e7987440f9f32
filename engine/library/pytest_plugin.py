"""A pytest plugin: the fixture `adjudge_score` fails a test if a run scores worse than a baseline."""

from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from adjudge.engine.commands.check import Check


class HeldAgainst(Protocol):
    """Checks a run; the options are those of `adjudge.engine.commands.check.check`."""

    def __call__(self, run: str, *, baseline: str | None = None, **options: Any) -> "Check":
        """The check, if it passed; otherwise the test fails."""


@pytest.fixture
def adjudge_score() -> HeldAgainst:
    """Fail the test if a run regressed or too little is scored: `adjudge_score("runs/new", baseline="runs/main")`."""
    # Every session of pytest loads this module, so the second that the import takes is for tests that need it.
    from adjudge.engine.commands.check import check

    def held(run: str, *, baseline: str | None = None, **options: Any) -> "Check":
        found = check(run, baseline, **options)
        if found.outcome != "passed":
            against = "" if baseline is None else f" against {baseline}"
            pytest.fail(f"{run}{against}: {found.summary}", pytrace=False)
        return found

    return held
