"""One gate before each judge: what a question passes on its way.

`Gate` is a judge itself. It holds three things, each of which may be missing:

- a `Limit`: questions in flight, requests and tokens a minute. It may change while questions are out: a cluster's
  driver leases shares of one limit to its evaluators, and together they never hold more than the whole.
- a trust: the judge is probed before its first question, and watched while it is asked. `RunTrust` has time: a judge
  that cannot be used ends the run before anything is stored, and one that falls silent pauses it. `RewardTrust` has
  little: questions wait for a judge that is away until their call gives them up, and where waiting cannot help,
  rewards are judge_unavailable at once. It is tried again in the background, soon where somebody waits.
- a `Budget`: the most questions and the most money that a run may spend.

`RunGates` and `RewardGates` make the gates of all judges of a run, and know what they have in common.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec

from adjudge.engine.config.judge import PATIENCE_S, JudgeConfig
from adjudge.engine.config.run import RunConfig
from adjudge.engine.evaluation.budget import Budget, Spent, cost_of
from adjudge.fetchers.flight import shared
from adjudge.judges import Answer, Asked, Judge, Question, Reply
from adjudge.judges.errors import JudgeError
from adjudge.judges.judgment import PROBE_SECONDS, Probed, Usage, Verdict, probe
from adjudge.judges.plural import plural
from adjudge.judges.queue import Slots

_log = logging.getLogger(__name__)

A = TypeVar("A", bound=Answer)
Ask = Callable[[], Coroutine[Any, Any, Reply[A]]]
"""Sends one question on, to the next part of the gate or to the judge."""

_BURST_SECONDS = 5.0
_BYTES_PER_TOKEN = 4.0  # of a prompt, until the judge has counted tokens


class Rate:
    """What may be spent: at most `per_minute` in any 60 seconds, plus what one question was underestimated by.

    It begins empty, so that closing and reopening it grants nothing extra. A question waits for `whole`, if that is
    more than it could otherwise save up.
    """

    def __init__(self, per_minute: float, whole: float = 0.0) -> None:
        self._rate = per_minute / (60.0 + _BURST_SECONDS)
        self._whole = whole
        self._level = 0.0
        self._at = time.monotonic()

    def resize(self, per_minute: float) -> None:
        """Continue at another rate."""
        self._fill()
        self._rate = per_minute / (60.0 + _BURST_SECONDS)
        self._level = min(self._level, self._burst)

    @property
    def _burst(self) -> float:
        return max(self._whole, self._rate * _BURST_SECONDS)

    async def spend(self, amount: float) -> None:
        """Wait until `amount` may be spent, and spend it. More than one burst waits for a full burst only."""
        while (wait := self._wait(amount)) > 0:  # noqa: ASYNC110 - only time adds to it
            await asyncio.sleep(wait)
        self._level -= amount

    def _wait(self, amount: float) -> float:
        """Seconds until the next check; 0 when `amount` may be spent."""
        missing = min(amount, self._burst) - self._fill()
        if not self._rate:
            return 1.0
        return min(1.0, max(0.001, missing / self._rate)) if missing > 0 else 0.0

    def correct(self, amount: float) -> None:
        """Spend `amount` more without waiting; a negative number gives it back."""
        self._level -= amount

    def _fill(self) -> float:
        now = time.monotonic()
        self._level = min(self._burst, self._level + (now - self._at) * self._rate)
        self._at = now
        return self._level


class Limit:
    """A `share` of what the judge of `config` takes: questions in flight, and requests and tokens per minute.

    Without `share`, all of it.
    """

    def __init__(self, config: JudgeConfig, share: int | None = None) -> None:
        self._config = config
        share = config.max_in_flight if share is None else share
        self.slots = Slots(share)
        self.requests = self._rate(config.requests_per_minute, share, whole=1.0)
        self.tokens = self._rate(config.tokens_per_minute, share)
        self._bytes, self._tokens = _BYTES_PER_TOKEN, 1.0

    def lease(self, share: int) -> None:
        """Hold `share` of the total from now on; an excess in flight is released as questions are answered."""
        self.slots.resize(share)
        for rate, whole in (
            (self.requests, self._config.requests_per_minute),
            (self.tokens, self._config.tokens_per_minute),
        ):
            if rate is not None and whole is not None:
                rate.resize(whole * share / self._config.max_in_flight)

    def _rate(self, per_minute: int | None, share: int, whole: float = 0.0) -> Rate | None:
        return None if per_minute is None else Rate(per_minute * share / self._config.max_in_flight, whole)

    @property
    def held(self) -> int:
        """The share held: the leased one, or the number still in flight if that is more."""
        return max(self.slots.total, self.slots.in_use)

    async def answered(self, question: Question[A], priority: int, ask: "Ask[A]") -> Reply[A]:
        """The reply of `ask`, once the limit admits the question; a lower `priority` goes first."""
        await self.slots.acquire(priority)
        try:
            if self.requests is not None:
                await self.requests.spend(1)
            if self.tokens is None:
                return await ask()
            size = _size(question)
            expected = size * self._tokens / self._bytes
            await self.tokens.spend(expected)
            reply = await ask()
            used = reply.usage.prompt_tokens + reply.usage.completion_tokens
            self.tokens.correct(used - expected if used else 0.0)
            if used:
                self._bytes, self._tokens = self._bytes + size, self._tokens + used
            return reply
        finally:
            self.slots.release()


def _size(question: Question[A]) -> int:
    """Number of characters that a question shows the judge."""
    shown = sum(len(section.text) for section in question.context.sections)
    return shown + sum(map(len, question.fields().values()))


ENOUGH = 256  # unavailable answers show that a judge is silent, however many questions are out
ATTEMPTS = 3  # for a question that is unavailable while the judge answers others
NOT_ASKED: Reply[Any] = Reply(reason="judge_unavailable")
"""The reply of a judge that is known to be down. It says nothing about the question, so it is not stored."""

_UNHEARD = frozenset({"judge_unavailable", "judge_timeout"})

Say = Callable[[str], None]
Check = Callable[[str, int], Coroutine[Any, Any, None]]
"""Called with a judge's name in the configuration and its window, in tokens, before the first question. Raises
JudgeError if it is too small."""
WindowCheck = Callable[[int], Coroutine[Any, Any, None]]


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long a judge is waited for, in seconds.

    - A run whose judge does not answer asks it one question at a time: after `rest_s`, and if that fails too, after
      `longest_rest_s`. It pauses after `silence_s` without an answer, and ends after `patience_s` more.
    - A reward's judge is tried again when it has not answered for `doubt_s`.
    - A probe takes at most `probe_s`; the next one comes after `backoff_s`, doubled each time up to `longest_s`.
    """

    rest_s: float = 2.0
    longest_rest_s: float = 8.0
    silence_s: float = 60.0
    patience_s: float = PATIENCE_S
    doubt_s: float = 2.0
    probe_s: float = PROBE_SECONDS
    backoff_s: float = 1.0
    longest_s: float = 30.0


def refusal(verdicts: Sequence[Verdict]) -> JudgeError | None:
    """Why none of the servers or engines can be used; None if one can, or if none is needed."""
    if not verdicts or any(verdict.is_good for verdict in verdicts):
        return None
    first, *others = verdicts
    count = "server" if len(others) == 1 else f"{len(others)} servers"
    also = f" (the other {count} cannot be used either)" if others else ""
    return JudgeError(f"{first.line}{also}", first.trouble or "unusable")


def warn(line: str) -> None:
    """Log one line for the user."""
    _log.warning("%s", line)


class _Trust:
    """What both kinds know of their judge. `say` is given each line for the user.

    `window` is the fewest tokens that a good server takes, where one says so; `check` is awaited when it is known,
    before the first question.
    """

    def __init__(
        self, judge: Judge, patience: Patience, say: Say = warn, check: WindowCheck | None = None
    ) -> None:
        self.window: int | None = None
        self.found: tuple[Verdict, ...] = ()  # by the last probe that some server passed
        self.check = check
        self._name = judge.identity.name
        self._judge = judge
        self._patience = patience
        self._say = say
        self._outstanding = 0
        self._left_out: set[str] = set()
        self._last_window: int | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Stop probing."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _try(self) -> JudgeError | None:
        """Probe every server once, and name those that are left out from now on; why none can be used."""
        verdicts = await probe(self._judge, self._patience.probe_s)
        if (refused := refusal(verdicts)) is not None:
            return refused
        good = [verdict for verdict in verdicts if verdict.is_good]
        self.found = tuple(verdicts)
        self.window = min((one.window for one in good if one.window is not None), default=None)
        bad = {verdict.where: verdict.line for verdict in verdicts if not verdict.is_good}
        for where in bad.keys() - self._left_out:
            self._say(f"{bad[where]} (left out; {len(good)} of {plural(len(verdicts), 'server')} answer)")
        self._left_out = set(bad)
        return await self._checked()

    async def _checked(self) -> JudgeError | None:
        """Have the window checked, once; why the judge cannot be used with it."""
        if self.check is not None and self.window is not None and self.window != self._last_window:
            try:
                await self.check(self.window)
            except JudgeError as error:
                return error
        self._last_window = self.window
        return None

    async def _until_good(self, refused: Callable[[JudgeError], None]) -> None:
        """Probe until the judge can be used; `refused` is called with the error of each failed one."""
        wait = self._patience.backoff_s
        while (why := await self._try()) is not None:
            refused(why)
            await self._pause(wait)
            wait = min(self._patience.longest_s, wait * 2)

    async def _pause(self, seconds: float) -> None:
        """Wait between two probes."""
        await asyncio.sleep(seconds)

    def _begin(self, task: "asyncio.Task[None]") -> "asyncio.Task[None]":
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class RunTrust(_Trust):
    """The trust in a judge of a run. Raises JudgeError if it cannot be used at its first question or falls silent.

    Questions go as they come, until one is judge_unavailable. Then they go one by one, each after a rest, and keep
    their turn for ATTEMPTS. Two answers in a row shorten the rest and then end it; so does one to a question that was
    out before. A question is given up after ATTEMPTS, once the judge has been heard since the first.
    """

    def __init__(
        self, judge: Judge, patience: Patience, say: Say = warn, check: WindowCheck | None = None
    ) -> None:
        super().__init__(judge, patience, say, check)
        self._trial: asyncio.Task[None] | None = None
        self._heard = 0
        self._missed = 0
        self._news = asyncio.Event()
        self._outage: asyncio.Task[None] | None = None
        self._paused = False
        self._rest_s = 0.0  # before each question; 0: all go as they come
        self._turn = asyncio.Lock()
        self._all_go = asyncio.Event()
        self._was_heard = False  # by the question before this one

    @property
    def is_waiting(self) -> bool:
        """Whether questions wait for the judge to answer again."""
        return self._outage is not None

    async def answered(self, ask: Ask[A]) -> Reply[A]:
        """The reply of `ask`, which may take as long as the judge is away."""
        if self._trial is None:
            self._trial = self._begin(asyncio.ensure_future(self._first_try()))
        await shared(self._trial)
        failed = heard = 0
        while True:
            async with self._in_turn() as goes_alone:
                reply = await self._asked(ask, goes_alone)
                while reply.reason == "judge_unavailable" and not reply.is_alone:
                    failed += 1
                    if failed == 1:
                        heard = self._heard
                    if failed >= ATTEMPTS or not (goes_alone and await self._rest()):
                        break
                    reply = await self._asked(ask, goes_alone)
                else:
                    return reply
            if failed >= ATTEMPTS:
                if self._heard > heard:
                    return reply
                await self._until_heard()

    async def _first_try(self) -> None:
        loop, longest = asyncio.get_running_loop(), self._patience.probe_s
        said = f"judge {self._name}: no answer yet; it is waited for, at most {longest:.0f} s (timeout_s)"
        late = loop.call_later(PROBE_SECONDS, self._say, said)
        try:
            refused = await self._try()
        finally:
            late.cancel()
        if refused is not None:
            raise refused

    @asynccontextmanager
    async def _in_turn(self) -> AsyncIterator[bool]:
        """Wait until a question may go; whether it goes alone."""
        if self._rest_s:
            async with self._turn:
                if await self._rest():
                    yield True
                    return
        yield False

    async def _rest(self) -> bool:
        """Wait before a question goes alone; False if all may go. Raises JudgeError when the judge is given up."""
        if not self._paused:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._rest_s):
                    await self._all_go.wait()
        if self._paused:
            await self._until_heard()
        return self._rest_s > 0

    async def _asked(self, ask: Ask[A], goes_alone: bool) -> Reply[A]:
        """The reply of `ask`, and what it says about the judge."""
        self._outstanding += 1
        try:
            reply = await ask()
        finally:
            self._outstanding -= 1
            self._news.set()
        if reply.reason not in _UNHEARD:
            self._hear(goes_alone)
        elif reply.reason == "judge_unavailable" and not reply.is_alone:
            self._miss(goes_alone)
        return reply

    def _hear(self, goes_alone: bool) -> None:
        """The judge has answered a question."""
        self._heard += 1
        self._missed = 0
        outage, self._outage = self._outage, None
        if outage is not None:
            outage.cancel()
        if self._paused:
            self._resume()
        if not goes_alone or (self._was_heard and self._rest_s <= self._patience.rest_s):
            self._rest_s = 0.0
            self._all_go.set()
        elif self._was_heard:
            self._rest_s = self._patience.rest_s
        self._was_heard = True

    def _miss(self, goes_alone: bool) -> None:
        """The judge has not answered a question."""
        self._missed += 1
        self._was_heard = False
        self._all_go.clear()
        if goes_alone:
            self._rest_s = self._patience.longest_rest_s
        elif not self._rest_s:
            self._rest_s = self._patience.rest_s
        if self._outage is None:
            self._outage = self._begin(asyncio.ensure_future(self._sit_out()))

    def _resume(self) -> None:
        self._paused = False
        self._say(f"judge {self._name}: answers again; the run continues")

    async def _until_heard(self) -> None:
        """Wait until the judge answers a question or a probe. Raises JudgeError when it is given up."""
        outage = self._outage
        if outage is None:
            return
        await asyncio.wait((outage,))
        if not outage.cancelled():
            outage.result()

    async def _sit_out(self) -> None:
        """Pause the run if the judge stays silent, until it is back. Raises JudgeError if that takes too long."""
        await asyncio.sleep(self._patience.silence_s)
        while self._outstanding and self._missed < ENOUGH:
            self._news.clear()
            await self._news.wait()
        self._paused = True
        name = f"judge {self._name}"
        self._say(f"{name}: no longer answers; the run is paused and continues when the judge is back")
        why: list[JudgeError] = []
        try:
            async with asyncio.timeout(self._patience.patience_s):
                await self._until_good(why.append)
        except TimeoutError:
            last = f": {why[-1]}" if why else ""
            said = f"{name}: not back after {self._patience.patience_s:.0f} s (patience_s){last}"
            raise JudgeError(said, "unreachable") from None
        self._outage = None
        self._heard += 1
        self._missed = 0
        self._was_heard = True  # with one answer more, all go
        self._rest_s = self._patience.rest_s
        self._resume()


class RewardTrust(_Trust):
    """The trust in a judge of rewards, which is tried in the background from `start` on.

    `trouble` says in one line why it cannot be used, None if it can. Questions wait for a judge that cannot be reached,
    for as long as who asks them does; from one that is refused for another cause they are NOT_ASKED. `seconds` is how
    long an answer has taken lately.
    """

    def __init__(
        self, judge: Judge, patience: Patience, say: Say = warn, check: WindowCheck | None = None
    ) -> None:
        super().__init__(judge, patience, say, check)
        self.trouble: str | None = f"judge {judge.identity.name}: not tried yet"
        self.seconds = 0.0
        self._may_pass = True
        self.is_tried = False
        self._news = asyncio.Event()  # of the next probe's end
        self._wanted = asyncio.Event()
        self._waiting = 0
        self._trial: asyncio.Task[None] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._heard = 0

    def start(self) -> None:
        """Try the judge in the background, until it can be used."""
        if self._trial is None:
            self._trial = self._begin(asyncio.ensure_future(self._keep_trying()))

    async def answered(self, ask: Ask[A]) -> Reply[A]:
        """The reply of `ask`, once the judge can be used, or NOT_ASKED. Never raises."""
        reply: Reply[A] = NOT_ASKED
        for _ in range(ATTEMPTS):
            if not await self._can_be_used():
                return NOT_ASKED
            reply = await self._asked(ask)
            if reply.reason != "judge_unavailable":
                break
            await self._probed()
        return reply

    async def _can_be_used(self) -> bool:
        """Wait until the judge can be used; False if it cannot, and waiting does not help."""
        while self.trouble is not None:
            if not self._may_pass:
                self._wanted.set()
                return False
            await self._probed()
        return True

    async def _probed(self) -> None:
        """Wait for the end of the next probe, which comes soon."""
        self.start()
        self._wanted.set()
        self._waiting += 1
        try:
            await self._news.wait()
        finally:
            self._waiting -= 1

    async def _asked(self, ask: Ask[A]) -> Reply[A]:
        self._outstanding += 1
        if self._watch is None:
            self._watch = self._begin(asyncio.ensure_future(self._doubt()))
        began = asyncio.get_running_loop().time()
        try:
            reply = await ask()
        except JudgeError as error:
            self._fall(error)
            return NOT_ASKED
        finally:
            self._outstanding -= 1
        if reply.reason not in _UNHEARD:
            self._heard += 1
            self.seconds += 0.1 * (asyncio.get_running_loop().time() - began - self.seconds)
        return reply

    def _fall(self, why: JudgeError) -> None:
        """The judge cannot be used from now on."""
        self._may_pass = why.trouble == "unreachable"
        if self.trouble is None or not self.is_tried:
            until = "when their time is up" if self._may_pass else "until the judge can be used"
            self._say(f"{why}; rewards are judge_unavailable {until}")
        self.trouble = str(why)
        self._tell()
        self.start()

    def _tell(self) -> None:
        """Let all who wait for the judge see what has become of it."""
        self.is_tried = True
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _keep_trying(self) -> None:
        await self._until_good(self._fall)
        if self.trouble is not None and self.is_tried:
            self._say(f"judge {self._name}: can be used again")
        self.trouble = self._trial = None
        self._tell()

    async def _pause(self, seconds: float) -> None:
        """Wait until the next probe; it comes soon after a call."""
        soon = min(seconds, self._patience.backoff_s)
        self._wanted.clear()
        await asyncio.sleep(soon)
        if not self._waiting:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), seconds - soon)

    async def _doubt(self) -> None:
        """Try the judge whenever nothing was heard of it for a while, for as long as questions are out."""
        while self._outstanding:
            heard = self._heard
            await asyncio.sleep(self._patience.doubt_s)
            if self._outstanding and self._heard == heard:
                self.start()
        self._watch = None


class Gate:
    """A judge behind a limit, a trust and a budget, as far as they are given. Its identity is the judge's own.

    A question waits for the limit, and counts against it until it has its reply; the trust asks the judge, once or more
    often; the budget counts each time. Raises JudgeError and LimitReached.
    """

    def __init__(
        self,
        judge: Judge,
        *,
        limit: Limit | None = None,
        trust: RunTrust | RewardTrust | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.identity = judge.identity
        self._judge = judge
        self._limit = limit
        self._trust = trust
        self._budget = budget
        self._estimates = False
        self._price = None if budget is None else budget.price_of(judge.identity.name)

    async def answer(self, question: Question[A], asked: Asked) -> Reply[A]:
        """The judge's reply, or the trust's while the judge cannot be used."""
        ask: Ask[A] = partial(self._ask, question, asked)
        if self._trust is not None:
            ask = partial(self._trust.answered, ask)
        return await (ask() if self._limit is None else self._limit.answered(question, asked.priority, ask))

    async def _ask(self, question: Question[A], asked: Asked) -> Reply[A]:
        if self._budget is None:
            return await self._judge.answer(question, asked)
        await self._budget.begin()
        cost = 0.0
        try:
            reply = await self._judge.answer(question, asked)
            cost = cost_of(self._used(question, reply), self._price)
            return reply
        finally:
            self._budget.end(cost)

    def _used(self, question: Question[A], reply: Reply[A]) -> Usage:
        """The tokens of a reply; about as many as there were, where the server does not count them."""
        if reply.answer is None or reply.usage.prompt_tokens or self._price is None:
            return reply.usage
        if not self._estimates:
            self._estimates = True
            _log.warning("judge %s: sends no count of tokens; its cost is estimated", self.identity.name)
        return Usage(
            prompt_tokens=round(_size(question) / _BYTES_PER_TOKEN),
            completion_tokens=round(len(reply.text) / _BYTES_PER_TOKEN),
        )

    async def close(self) -> None:
        """Close the judge."""
        if self._trust is not None:
            await self._trust.close()
        await self._judge.close()


class Gates(Protocol):
    """Makes the gates of a run's judges."""

    def before(self, judge: Judge, name: str, limit: Limit | None) -> Gate:
        """The gate before `judge`: the one that the configuration calls `name`, or a member of that panel."""
        ...


def _patience_of(config: JudgeConfig) -> Patience:
    """How long the judge of `config` is waited for; a probe as long as any question."""
    longest = max(one.timeout_s for one in config.each())
    return Patience(patience_s=config.patience_s, probe_s=max(PROBE_SECONDS, longest))


class RunGates:
    """The gates of a run: its judges are waited for, and are not asked more than the run may spend."""

    def __init__(
        self,
        config: RunConfig,
        patience: Patience | None = None,
        say: Say = warn,
        check: Check | None = None,
    ) -> None:
        self._check = check
        self._patience = patience
        self._seats = config.resolved.bench.seats
        self._say = say
        self._budget = Budget(config)
        self._trusts: list[tuple[str, RunTrust]] = []

    def before(self, judge: Judge, name: str, limit: Limit | None) -> Gate:
        """The gate before `judge`; a server or an engine is tried before it is asked."""
        trust = None
        if isinstance(judge, Probed):
            patience = self._patience or _patience_of(self._seats[name].config)
            check = None if self._check is None else partial(self._check, name)
            trust = RunTrust(judge, patience, self._say, check)
            self._trusts.append((name, trust))
        return Gate(judge, limit=limit, trust=trust, budget=self._budget)

    @property
    def spent(self) -> Spent:
        """How many questions all judges were asked, and what that cost."""
        return self._budget.spent

    @property
    def is_waiting(self) -> bool:
        """Whether questions wait for a judge to answer again."""
        return any(trust.is_waiting for _, trust in self._trusts)

    @property
    def probed(self) -> dict[str, tuple[Verdict, ...]]:
        """What the probe found of every server that was tried, by the judge's name in the configuration."""
        found: dict[str, tuple[Verdict, ...]] = {}
        for name, trust in self._trusts:
            found[name] = (*found.get(name, ()), *trust.found)
        return {name: verdicts for name, verdicts in found.items() if verdicts}


class RewardGates:
    """The gates of rewards: their judges may come later, and are waited for no longer than a call is."""

    def __init__(self, patience: Patience | None = None) -> None:
        self._patience = patience or Patience()
        self._trusts: list[tuple[str, RewardTrust]] = []

    def before(self, judge: Judge, name: str, limit: Limit | None) -> Gate:
        """The gate before `judge`; a server or an engine is on standby."""
        trust = None
        if isinstance(judge, Probed):
            trust = RewardTrust(judge, self._patience)
            self._trusts.append((name, trust))
        return Gate(judge, limit=limit, trust=trust)

    def start(self, check: Check) -> None:
        """Try every judge, in the background; `check` is called with each window."""
        for name, trust in self._trusts:
            trust.check = partial(check, name)
            trust.start()

    @property
    def is_away(self) -> bool:
        """Whether a judge was tried and cannot be used now."""
        return any(trust.is_tried and trust.trouble is not None for _, trust in self._trusts)

    @property
    def seconds(self) -> float:
        """How long the slowest judge has taken for an answer lately."""
        return max((trust.seconds for _, trust in self._trusts), default=0.0)

    @property
    def trouble(self) -> str | None:
        """Why a judge cannot be used now, in one line; rewards are judge_unavailable then. None if all can."""
        return next((trust.trouble for _, trust in self._trusts if trust.trouble is not None), None)
