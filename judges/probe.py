"""A judge is tried before it is trusted: the smallest question, and what the reply says about the judge."""

from typing import Literal, Protocol, runtime_checkable

import msgspec

from adjudge.judges.errors import Trouble
from adjudge.judges.judgment import Judge
from adjudge.judges.question import Answer, Context, Question

__all__ = ["PROBE_SECONDS", "Probe", "Probed", "Ready", "Verdict", "probe"]

PROBE_SECONDS = 60.0


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the probe of one server or engine found: `trouble`, or None if it can be used.

    `where` names it (without a key or query), `line` says in one line what is wrong with it and what to do. `window` is
    the most tokens that prompt and answer may take together, None where it does not say; `seconds` is the time of the
    reply.
    """

    where: str
    trouble: Trouble | None = None
    line: str = ""
    window: int | None = None
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        """Whether questions may be sent to it."""
        return self.trouble is None


@runtime_checkable
class Probed(Protocol):
    """A judge that can be tried. What wraps or combines judges hands this on to each of them."""

    async def probe(self, timeout_s: float = PROBE_SECONDS) -> tuple[Verdict, ...]:
        """Ask each server or engine behind this judge the probe, constrained and with the settings of the run.

        One verdict for each, in their order. Never raises for a judge that cannot be used.
        """
        ...


async def probe(judge: Judge, timeout_s: float = PROBE_SECONDS) -> tuple[Verdict, ...]:
    """The verdicts on all that stands behind `judge`; empty for a judge that needs neither server nor engine."""
    return await judge.probe(timeout_s) if isinstance(judge, Probed) else ()


class Ready(Answer, frozen=True, kw_only=True):
    """Yes or no."""

    ready: Literal["yes", "no"]


class Probe(Question[Ready], frozen=True, kw_only=True):
    """Asks a judge whether it can read the context."""

    prompt = "probe"
    answer = Ready

    @classmethod
    def make(cls) -> "Probe":
        """The only probe."""
        return cls(context=Context.of(note="This is a test of the connection."))

    def lexical(self) -> Ready:
        """Always ready."""
        return Ready(ready="yes")
