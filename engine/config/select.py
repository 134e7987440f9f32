"""What a run evaluates, or a leaderboard ranks, of all tasks and systems."""

import msgspec

from adjudge.engine.config.numbers import Count

__all__ = ["EVERYTHING", "Select"]

_NAMED = 5


class Select(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A choice of tasks and systems; an empty list leaves the choice open.

    A task must satisfy all that is given.
    """

    limit: Count | None = None
    """Keeps the first of the tasks that satisfy the rest, in the order of their file, the same for every system."""
    tasks: list[str | int] = []
    """Ids of tasks."""
    systems: list[str] = []
    """Names of systems."""
    languages: list[str] = []
    """Languages of tasks."""
    domains: list[str] = []
    """Domains of tasks."""

    @property
    def words(self) -> str:
        """The choice in words, "" for everything."""
        lists = {
            "tasks": [str(one) for one in self.tasks],
            "systems": self.systems,
            "languages": self.languages,
            "domains": self.domains,
        }
        said = [f"{kind} {_listed(names)}" for kind, names in lists.items() if names]
        if self.limit is not None:
            said.append(f"the first {self.limit:,} tasks")
        return "; ".join(said)


EVERYTHING = Select()


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
