"""Why something is unscored, and who caused it: the closed list of reasons and their causes.

One question decides the cause: could another judge, network or configuration have answered about this very report? If
so, the failure says nothing about the report. The causes:

- `infrastructure`: a failure of judge, network, limits or configuration. No value, counted, never a score.
- `source`: a page that the report chose to cite and that cannot be retrieved. Missing or counted as the published rule
  says under a published name; unsupported in the `_strict` forms.
- `report`: the report's own fault, which must not pay: the minimum, or an unsupported citation.
- `gold`: the task lacks what the protocol compares with. No value.
- `input`: the task is unknown, or a rollout that is judged beside others of its prompt came without them. No value.
"""

from typing import Literal

from adjudge.fetchers.page import PageReason
from adjudge.judges.judgment import JudgeReason

__all__ = ["CAUSES", "TRANSIENT", "Cause", "GoldReason", "InputReason", "Reason", "ReportReason"]

Cause = Literal["infrastructure", "source", "report", "gold", "input"]
ReportReason = Literal["report_empty", "report_too_large", "truncated"]
GoldReason = Literal["gold_missing", "gold_invalid"]
InputReason = Literal["task_unknown", "group_missing"]
Reason = JudgeReason | PageReason | ReportReason | GoldReason | InputReason

CAUSES: dict[Reason, Cause] = {
    "judge_unavailable": "infrastructure",
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
    "page_not_in_snapshot": "infrastructure",
    "page_unsupported": "infrastructure",
    "page_gone": "source",
    "page_blocked": "source",
    "page_barred": "source",
    "page_timeout": "source",
    "page_server_error": "source",
    "report_empty": "report",
    "report_too_large": "report",
    "truncated": "report",
    "citation_malformed": "report",
    "gold_missing": "gold",
    "gold_invalid": "gold",
    "task_unknown": "input",
    "group_missing": "input",
}
"""Every reason's cause."""

TRANSIENT: frozenset[str] = frozenset(
    {
        "judge_unavailable",
        "judge_timeout",
        "judge_unparseable",
        "deadline",
        "worker_died",
        "network_unavailable",
        "page_timeout",
        "page_server_error",
    }
)
"""Reasons after which the next run asks again. All others answer from the store until `--retry-unscored`."""
