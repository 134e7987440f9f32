"""What systems spent on their reports, as stated in the reports: the other axis of a leaderboard."""

from collections.abc import Iterable, Iterator

import msgspec

from adjudge.scoring.contract.case import Case

__all__ = ["Spending", "Spent"]


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """Means over a system's reports: wall `seconds`, `cost` in the user's currency, `tokens` in all.

    `tokens_written` is `tokens` minus the input tokens. Each mean is over the reports that state it, and None if no
    report does; `reports` counts all reports.
    """

    reports: int
    seconds: float | None
    cost: float | None
    tokens: float | None
    tokens_written: float | None = None


class Spending:
    """Adds up what the reports of cases state, as they pass."""

    def __init__(self) -> None:
        self._reports: dict[str, int] = {}
        self._sums: dict[tuple[str, str], tuple[float, int]] = {}

    def watch(self, cases: Iterable[Case]) -> Iterator[Case]:
        """Pass `cases` through unchanged; each report is counted once, at the judge's first repeat."""
        for case in cases:
            if case.repeat == 0:
                self._count(case)
            yield case

    def _count(self, case: Case) -> None:
        report = case.report
        self._reports[report.system] = self._reports.get(report.system, 0) + 1
        usage = report.usage
        stated = {
            "seconds": report.seconds,
            "cost": None if usage is None else usage.cost,
            "tokens": None if usage is None else usage.total_tokens,
            "tokens_written": None if usage is None else usage.written,
        }
        for name, value in stated.items():
            if value is not None:
                total, count = self._sums.get((report.system, name), (0.0, 0))
                self._sums[report.system, name] = total + value, count + 1

    def result(self) -> dict[str, Spent]:
        """What each system spent until now, by name."""
        return {
            system: Spent(
                reports=count,
                seconds=self._mean(system, "seconds"),
                cost=self._mean(system, "cost"),
                tokens=self._mean(system, "tokens"),
                tokens_written=self._mean(system, "tokens_written"),
            )
            for system, count in sorted(self._reports.items())
        }

    def _mean(self, system: str, name: str) -> float | None:
        total, count = self._sums.get((system, name), (0.0, 0))
        return total / count if count else None
