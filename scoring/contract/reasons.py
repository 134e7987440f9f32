"""Why something is unscored, and whose doing it was: the closed list of reasons and causes."""

from typing import Literal

from adjudge.fetchers.page import PageReason
from adjudge.judges.judgment import JudgeReason

__all__ = ["CAUSES", "TRANSIENT", "Cause", "GoldReason", "Reason", "ReportReason"]

Cause = Literal["infrastructure", "report", "gold"]
ReportReason = Literal["report_empty", "report_too_large"]
GoldReason = Literal["gold_missing", "gold_invalid"]
Reason = JudgeReason | PageReason | ReportReason | GoldReason

CAUSES: dict[Reason, Cause] = {
    "judge_unavailable": "infrastructure",
    "judge_timeout": "infrastructure",
    "judge_unparseable": "infrastructure",
    "judge_refused": "infrastructure",
    "judge_unsupported": "infrastructure",
    "media_unsupported": "infrastructure",
    "deadline": "infrastructure",
    "worker_died": "infrastructure",
    "page_barred": "infrastructure",
    "page_timeout": "infrastructure",
    "page_server_error": "infrastructure",
    "network_unavailable": "infrastructure",
    "page_not_in_snapshot": "infrastructure",
    "page_unsupported": "infrastructure",
    "report_empty": "report",
    "report_too_large": "report",
    "citation_malformed": "report",
    "page_gone": "report",
    "page_blocked": "report",
    "context_overflow": "report",
    "answer_truncated": "report",
    "gold_missing": "gold",
    "gold_invalid": "gold",
}
"""Every reason's cause: `infrastructure` says nothing about the report, `report` is its own doing and counts."""

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
"""What the next run asks for again. Anything else answers from the store until `--retry-unscored`."""
