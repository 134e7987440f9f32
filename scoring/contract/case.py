"""A case: a task and one system's report for it."""

from collections.abc import Hashable
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec

from adjudge.scoring.contract.reasons import GoldReason

__all__ = [
    "NULL",
    "Amount",
    "Case",
    "Citation",
    "Count",
    "GoldError",
    "Passage",
    "Report",
    "ReportUsage",
    "Sample",
    "Task",
    "Unread",
]

G = TypeVar("G")

NULL = msgspec.Raw(b"null")

Sample = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]
# What reports state about themselves is added up, squared and written as 64-bit numbers.
Count = Annotated[int, msgspec.Meta(ge=0, le=10**15)]
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class GoldError(ValueError):
    """A task's gold is missing or does not decode; `reason` is gold_missing or gold_invalid."""

    def __init__(self, reason: GoldReason, message: str) -> None:
        super().__init__(message)
        self.reason: GoldReason = reason


class Unread(RuntimeError):
    """A report could not be read for a cause outside of it; `reason` is deadline or worker_died."""

    def __init__(self, reason: Literal["deadline", "worker_died"], message: str) -> None:
        super().__init__(message)
        self.reason: Literal["deadline", "worker_died"] = reason


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """The words that an item of gold rests on: a `quote` from a document, by its name, or from the task's prompt."""

    part: str
    item: str
    quote: str
    source: str = "task"


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task. `gold` maps a protocol's name to raw JSON that only that protocol decodes.

    `attributes` also group tasks in tables: a benchmark's kind of paper, say. `rests_on` says by
    protocol what items of its gold rest on, for people and for `adjudge gold --check`; nothing is scored by it.
    """

    id: str
    prompt: str
    language: str = "en"
    domain: str = ""
    attributes: dict[str, str] = {}
    gold: dict[str, msgspec.Raw] = {}
    rests_on: dict[str, tuple[Passage, ...]] = {}


class Citation(msgspec.Struct, frozen=True, kw_only=True):
    """A source that a system says it cited, where it hands its citations over apart from the text.

    `position` is how many characters of the text precede the citation, if known.
    """

    url: str
    title: str = ""
    marker: Annotated[str, msgspec.Meta(max_length=200)] = ""
    position: Count | None = None


class ReportUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of writing the report: total tokens, input tokens, pages retrieved, and money in the user's currency.

    `inference_seconds` and `retrieval_seconds` are the parts of its time in which a model wrote and pages were sought.
    """

    total_tokens: Count | None = None
    input_tokens: Count | None = None
    retrieved: Count | None = None
    cost: Amount | None = None
    inference_seconds: Amount | None = None
    retrieval_seconds: Amount | None = None

    @property
    def written(self) -> int | None:
        """Tokens that the system itself generated; None where that is not stated, or nothing."""
        if self.total_tokens is None or self.input_tokens is None or self.total_tokens <= self.input_tokens:
            return None
        return self.total_tokens - self.input_tokens


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A system's report. Its identity is (system, task_id, sample); `sample` numbers the agent's own runs.

    `answer` is structured output where a benchmark asks for one, `plan` the subtasks the agent laid out, `evidence`
    what it read, `trace` its steps, `seconds` its wall time, `mode` what it was written from where a benchmark tells
    modes apart. A `truncated` report was cut off before its end. `answer` and `trace` are JSON, and null where there is
    none (JSON decoding knows no `Raw | None`).
    Only the first two and `text` are required.
    """

    task_id: str
    system: Annotated[str, msgspec.Meta(pattern=r"\S")]
    sample: Sample = 0
    text: str
    citations: tuple[Citation, ...] = ()
    answer: msgspec.Raw = NULL
    plan: tuple[str, ...] = ()
    evidence: tuple[Citation, ...] = ()
    trace: msgspec.Raw = NULL
    usage: ReportUsage | None = None
    seconds: Amount | None = None
    mode: str = ""
    truncated: bool = False

    @property
    def identity(self) -> tuple[str, str, int]:
        """(system, task_id, sample)."""
        return self.system, self.task_id, self.sample


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A report to be judged under its task, or compared with that of a `rival`. `repeat` is the judge's repetition."""

    task: Task
    report: Report
    repeat: int = 0
    rival: Report | None = None

    def gold(self, protocol: str, kind: type[G]) -> G:
        """The task's gold for `protocol`, decoded as `kind`.

        Raises GoldError with reason gold_missing when the task has none, gold_invalid when it does not fit `kind`.
        """
        raw = self.task.gold.get(protocol)
        if raw is None:
            raise GoldError("gold_missing", f"task {self.task.id}: no gold for {protocol}")
        try:
            gold: G = _decoded(bytes(raw), cast(Hashable, kind))
        except (msgspec.MsgspecError, RecursionError) as error:
            raise GoldError("gold_invalid", f"task {self.task.id}: gold for {protocol}: {error}") from error
        return gold


@lru_cache(maxsize=64)  # the reports of one task come one after the other
def _decoded(raw: bytes, kind: Hashable) -> Any:
    return msgspec.json.decode(raw, type=cast(Any, kind))
