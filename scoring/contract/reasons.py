"""Why something is missing, and who caused it: the closed list of reasons and their causes.

One question decides the cause: who chose what failed?

- `infrastructure`: what no report can choose: a failure of judge, network, limits or configuration, or a page that was
  never requested. No value, counted, never a score; the next run asks again.
- `source`: what depends on the URL that the report chose, whatever it was: a page that is gone, refused, barred, empty,
  late, failing, of a kind or size that is not read, or not among the pages there are. It counts against the citation,
  in every figure alike; `high` says what it could have been.
- `report`: the report's own doing, which must not pay: the minimum, or an unsupported citation.
- `gold`: the task lacks what the protocol compares with. No value.
- `input`: the task is unknown, or a line, prediction or rollout cannot be read. No value.
"""

from typing import Literal

from adjudge.fetchers.page import PageReason
from adjudge.judges.judgment import JudgeReason

__all__ = ["ASKED_FOR", "CAUSES", "TRANSIENT", "Cause", "GoldReason", "InputReason", "Reason", "ReportReason"]

Cause = Literal["infrastructure", "source", "report", "gold", "input"]
ReportReason = Literal["report_empty", "report_too_large", "truncated"]
GoldReason = Literal["gold_missing", "gold_invalid"]
InputReason = Literal["task_unknown", "group_missing", "report_unclear"]
ServerReason = Literal["server_unreachable"]
Reason = JudgeReason | ServerReason | PageReason | ReportReason | GoldReason | InputReason

CAUSES: dict[Reason, Cause] = {
    "judge_unavailable": "infrastructure",
    "server_unreachable": "infrastructure",
    "judge_timeout": "infrastructure",
    "judge_unparseable": "infrastructure",
    "judge_refused": "infrastructure",
    "judge_unsupported": "infrastructure",
    "answer_truncated": "infrastructure",
    "context_overflow": "infrastructure",
    "media_unsupported": "infrastructure",
    "deadline": "infrastructure",
    "worker_died": "infrastructure",
    "network_unavailable": "infrastructure",
    "page_deferred": "infrastructure",
    "page_rate_limited": "infrastructure",
    "pages_off": "infrastructure",
    "snapshot_damaged": "infrastructure",
    "page_gone": "source",
    "page_blocked": "source",
    "page_barred": "source",
    "page_empty": "source",
    "page_timeout": "source",
    "page_server_error": "source",
    "page_unsupported": "source",
    "page_not_in_snapshot": "source",
    "report_empty": "report",
    "report_too_large": "report",
    "truncated": "report",
    "citation_malformed": "report",
    "gold_missing": "gold",
    "gold_invalid": "gold",
    "task_unknown": "input",
    "group_missing": "input",
    "report_unclear": "input",
}
"""Every reason's cause."""

ASKED_FOR: frozenset[str] = frozenset({"page_rate_limited"})
"""Reasons that are nobody's fault on a leaderboard, but a rollout's own choice in a reward: the page was asked for, and
its site did not give it."""

TRANSIENT: frozenset[str] = frozenset(
    {
        "judge_unavailable",
        "server_unreachable",
        "judge_timeout",
        "judge_unparseable",
        "deadline",
        "worker_died",
        "network_unavailable",
        "page_deferred",
        "page_rate_limited",
        "page_timeout",
        "page_server_error",
        "snapshot_damaged",
    }
)
"""Reasons after which the next run asks again. All others answer from the store until `--retry-unscored`."""
