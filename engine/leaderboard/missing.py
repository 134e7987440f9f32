"""What to say of a missing score, everywhere: its cause, what it is about, and what to do."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from adjudge.engine.config.judge import JudgeConfig
from adjudge.engine.leaderboard.selection import NOT_SUBMITTED
from adjudge.engine.records.record import RunRecord
from adjudge.scoring.contract.reasons import CAUSES, TRANSIENT

__all__ = ["cause_of", "explained", "remedy", "said_of"]

_CAUSES: Mapping[str, str] = {str(reason): cause for reason, cause in CAUSES.items()} | {
    NOT_SUBMITTED: "input"
}

_FIRST = {
    "judge_unavailable": "start the judge or correct its address",
    "judge_timeout": "",
    "judge_unparseable": "",
    "judge_refused": "choose another judge",
    "judge_unsupported": "choose a judge that can answer such questions",
    "answer_truncated": "give the judge more tokens for its answers",
    "context_overflow": "choose a judge with a larger context window",
    "media_unsupported": "choose a judge that takes such media",
    "deadline": "allow more time",
    "worker_died": "give the workers more memory",
    "network_unavailable": "connect to the network",
    "page_not_in_snapshot": "add the pages to the snapshot or set fetch: live",
    "page_unsupported": "add the pages as text to a snapshot",
    "page_timeout": "",
    "page_server_error": "",
    "gold_missing": "add the gold to the task",
    "gold_invalid": "correct the gold of the task",
    "task_unknown": "add the task",
    "group_missing": "send all rollouts of a prompt in one call",
    NOT_SUBMITTED: "add the reports or leave out the tasks",
}
"""What to do before the command is repeated; nothing for what is the report's own."""


def cause_of(reason: str) -> str:
    """Whose doing a missing score is, "-" for a reason that this version does not know."""
    return _CAUSES.get(reason, "-")


def remedy(reason: str) -> str:
    """What to do about a missing score, in words."""
    if reason not in _FIRST:
        return "nothing to do: the report's own choice" if reason in _CAUSES else "-"
    unasked = reason in TRANSIENT or cause_of(reason) in ("gold", "input")
    again = "run the same command again" if unasked else "run the same command with --retry-unscored"
    return f"{_FIRST[reason]}, then {again}" if _FIRST[reason] else again


def explained(reason: str) -> str:
    """A reason with its cause and remedy."""
    return f"{reason} ({cause_of(reason)}): {remedy(reason)}"


def said_of(
    name: str,
    counts: dict[str, int],
    protocol: str,
    records: Sequence[RunRecord],
    not_submitted: Sequence[str] = (),
) -> list[str]:
    """One sentence for each reason in `counts`, the scores of `name` that are missing in the runs `records`."""
    found = []
    recorded = bool(records) and all(record.recorded for record in records)
    for reason, count in sorted(counts.items()):
        places = not_submitted if reason == NOT_SUBMITTED else _places(reason, protocol, records)
        about = _about(reason, places, protocol, records)
        todo = "missing in the recorded results" if recorded else remedy(reason)
        found.append(f"{name}: {count:,} unscored, {reason} ({cause_of(reason)}){about}; {todo}")
    return found


def _places(reason: str, protocol: str, records: Sequence[RunRecord]) -> list[str]:
    """Some of the pages or reports behind a reason, as far as the runs have noted them."""
    failed = (one for record in records for one in record.failures)
    return sorted(
        {place for one in failed if (one.protocol, one.reason) == (protocol, reason) for place in one.places}
    )[:3]


def _about(reason: str, places: Sequence[str], protocol: str, records: Sequence[RunRecord]) -> str:
    own = records if reason.startswith("judge_") else ()
    judges = dict.fromkeys(server for record in own for server in _servers(record, protocol))
    said = [*judges, *([f"such as {', '.join(places)}"] if places else [])]
    return f": {'; '.join(said)}" if said else ""


def _servers(record: RunRecord, protocol: str) -> list[str]:
    """The judges of a protocol with the addresses of their servers, without anything secret that these hold."""
    judging = record.judging
    judges = {protocol: judging.protocol(protocol), **judging.protocol_media(protocol)}
    found = []
    for answer, judge in judges.items():
        addresses = ", ".join(dict.fromkeys(_addresses(record.config.judge_of(answer))))
        found.append(f"judge {judge.name}{f' at {addresses}' if addresses else ''}")
    return found


def _addresses(judge: JudgeConfig) -> list[str]:
    if judge.backend == "panel":
        return [address for member in judge.panel() for address in _addresses(member)]
    return [urlsplit(url).netloc.rpartition("@")[2] for url in (judge.url, *judge.urls) if url]
