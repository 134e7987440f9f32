"""Pace: which request to a site may be sent, and when, by what the site has answered so far.

A site that refuses a request for its own load (429, 503) rests: for as long as it asks, or else longer each time; a
second at most if it does not say that this will pass (503 without a wait), as it may answer so for ever. Then it gets
one request at a time, further apart, and faster again with each answer. A site that refuses everything for longer than
our patience, or lets one request after the other time out, is given up: what waits for it is deferred, and one more
request is tried after each further rest. Who comes back for what was deferred is in time for one of these.

Whoever has been refused less often goes first, so that pages which a site never gives do not keep others waiting. How
long a page is asked for does not depend on others: by the waits that its own refusals come to.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from heapq import heappop, heappush
from itertools import count
from random import uniform

from adjudge.fetchers.failures import Failure
from adjudge.fetchers.limits import PATIENCE_S, Limits

_MANY_SITES = 4096
_FIRST = 0.25  # seconds: the rest after a first refusal, and the pause between requests after it
_SLOWEST = 4.0  # seconds between two requests to a site that answers some of them
_OUT_OF_ORDER = 1.0  # seconds: the longest rest of a site that does not say that its refusals will pass
_LONG_WAITS = 3  # refusals in a row that ask for more than we wait: it is not one page that is refused
_LONGEST = 8.0  # seconds between two attempts at one page
_BACKOFF = 0.25  # seconds, doubled for each attempt: after a failure that is no refusal
_TIMEOUTS = 3  # one after the other, without an answer in between
REST = 2.0
"""Seconds until a site that is given up because requests time out is tried once more; doubled for each further one."""
_LONGEST_REST = 16.0


class Turn:
    """The right to send one request to a site."""

    def __init__(self, site: "_Site") -> None:
        self._site = site
        self._began = site.clock()
        self._unsent = True

    def sent(self) -> None:
        """The request is on its way: the pause until the site's next one begins now."""
        if self._unsent:
            self._unsent = False
            self._began = self._site.clock()
            self._site.sent(self._began)

    @contextmanager
    def outcome(self) -> Iterator[None]:
        """Learn from what comes of the request that the block sends."""
        try:
            yield
        except Failure as failure:
            if failure.refused:
                self._site.refused(self._began, failure.wait, passes=failure.passes)
            elif failure.reason == "page_timeout":
                self._site.timed_out(self._began)
            elif not failure.again:  # else perhaps nobody answered
                self._site.answered()
            raise
        self._site.answered()

    def advised(self, wait: float | None) -> None:
        """By an answer's rate limit, the site takes the next request after `wait` seconds, if it says so."""
        self._site.advised(wait)

    def over(self) -> None:
        """Give the turn to the next in line."""
        self._site.left(unsent=self._unsent)


class Turns:
    """Gives out turns so that no site sees more than `per_host` at once, or two within the pause between them.

    A site that refuses everything for `patience` seconds is given up.
    """

    def __init__(self, limits: Limits, patience: float = PATIENCE_S) -> None:
        self._limits = limits
        self._patience = patience
        self._sites: dict[str, _Site] = {}

    @asynccontextmanager
    async def turn(self, name: str, delay: float = 0.0, *, refusals: int = 0) -> AsyncIterator[Turn]:
        """A turn at the site `name` for as long as the block lasts. A longer `delay` overrides the limit's.

        Who has had more `refusals` stands behind all who have had fewer. Raises Failure (page_deferred) if the site is
        given up before it is asked.
        """
        site = self._site(name)
        site.delay = max(site.delay, delay)
        await site.admit(refusals)
        turn = Turn(site)
        try:
            yield turn
        finally:
            turn.over()

    def _site(self, name: str) -> "_Site":
        if name not in self._sites and len(self._sites) >= _MANY_SITES:
            self._sites = {key: site for key, site in self._sites.items() if site.is_busy}
        return self._sites.setdefault(name, _Site(self._limits, self._patience))


class _Site:
    """What is known of a site: who waits for it, who has a turn, and how fast it may be asked. Times are the loop's."""

    def __init__(self, limits: Limits, patience: float) -> None:
        self.clock = asyncio.get_running_loop().time
        self.delay = limits.delay
        self._limits = limits
        self._patience = patience
        self._line: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None
        self._at_work = 0
        self._unsent = 0
        self._last = 0.0  # when the last request was sent
        self._pause = 0.0  # what the site taught us to leave between two requests
        self._rests_until = 0.0
        self._given_up = False
        self._refusals = 0  # without an answer since
        self._refused_at = 0.0
        self._refusing_since = 0.0
        self._timeouts = 0
        self._timed_out_at = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether something waits, is under way, or must not be forgotten yet."""
        quiet = self._at_work == 0 and not self._line and self._refusals == self._timeouts == 0
        return not quiet or self.clock() < max(self._rests_until, self._last + self._between)

    async def admit(self, refusals: int) -> None:
        """Wait for a turn. Raises Failure."""
        self._check()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._line, (refusals, next(self._numbers), turn))
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.left(unsent=True)
            raise

    def sent(self, now: float) -> None:
        """A request has been sent."""
        self._unsent -= 1
        self._last = now
        self._serve()

    def left(self, *, unsent: bool) -> None:
        """A turn is over."""
        self._at_work -= 1
        self._unsent -= unsent
        self._serve()

    def answered(self) -> None:
        """Speed up again."""
        self._refusals = self._timeouts = 0
        self._given_up = False
        self._pause = self._pause / 2 if self._pause > _FIRST / 2 else 0.0

    def refused(self, began: float, wait: float | None, *, passes: bool) -> None:
        """Slow down, or give the site up. Requests sent before the last refusal was known are of one piece with it."""
        now = self.clock()
        is_long = wait is not None and wait > self._patience
        if began >= self._refused_at:
            self._refused_at = now
            self._refusals += 1
            if self._refusals == 1:
                self._refusing_since = now
                self._pause = min(max(2 * self._pause, _FIRST), _SLOWEST)
            longest = self._patience if passes else _OUT_OF_ORDER
            rest = min(_FIRST * 2.0 ** min(self._refusals - 1, 20), longest)
        else:
            rest = 0.0
        if wait is not None and not is_long:
            rest = max(rest, wait)
        self._rests_until = max(self._rests_until, now + rest)
        late = self._rests_until > self._refusing_since + self._patience
        if late or (is_long and self._refusals >= _LONG_WAITS):
            self._give_up()

    def advised(self, wait: float | None) -> None:
        """Rest for `wait` seconds, unless that is longer than we wait."""
        if wait is not None and wait <= self._patience:
            self._rests_until = max(self._rests_until, self.clock() + wait)

    def timed_out(self, began: float) -> None:
        """Give the site up if this goes on. What was under way together counts as one."""
        if began >= self._timed_out_at:
            self._timed_out_at = self.clock()
            self._timeouts += 1
        if self._timeouts >= _TIMEOUTS:
            self._rests_until = max(self._rests_until, self.clock() + self._rest)
            self._give_up()

    @property
    def _rest(self) -> float:
        return min(REST * 2.0 ** min(self._timeouts - _TIMEOUTS, 9), _LONGEST_REST)

    @property
    def _between(self) -> float:
        return max(self.delay, self._pause)

    @property
    def _at_once(self) -> int:
        """One at a time while it is not known how fast the site may be asked, or whether it answers at all."""
        return 1 if self._pause or self._given_up else self._limits.per_host

    def _give_up(self) -> None:
        self._given_up = True
        line, self._line = self._line, []
        for _, _, turn in line:
            if not turn.done():
                turn.set_exception(_deferred())

    def _check(self) -> None:
        if self._given_up and self.clock() < self._rests_until:
            raise _deferred()

    def _serve(self) -> None:
        """Give turns to the first in line, as many as may have one now."""
        while self._line:
            if self._line[0][2].done():  # whoever waited has left
                heappop(self._line)
                continue
            between = self._between
            if self._at_work >= self._at_once or (between and self._unsent):
                return
            start = max(self._last + between if between else 0.0, self._rests_until)
            if self.clock() < start:
                self._wake(start)
                return
            heappop(self._line)[2].set_result(None)
            self._at_work += 1
            self._unsent += 1

    def _wake(self, moment: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(moment, self._serve)


class Attempts:
    """The attempts at one URL, so many `refusals` of them: whether there is to be another one, and when."""

    def __init__(self, limits: Limits, patience: float = PATIENCE_S) -> None:
        self._limits = limits
        self._patience = patience
        self.refusals = 0
        self._waited = 0.0
        self._failed = 0
        self._last: Failure | None = None

    def wait_after(self, failure: Failure) -> float:
        """Seconds until the attempt after one that ended by `failure`. Raises what it comes to if there is none."""
        if failure.reason == "page_deferred" and self._last is not None:
            raise self._last  # the site takes no further request: its answer to the last one counts
        self._last = failure
        if failure.passes and self._limits.retries:
            return self._after_refusal(failure)
        if not failure.again or self._failed == self._limits.retries:
            raise failure
        self._failed += 1
        return _BACKOFF * 2.0**self._failed * uniform(0.5, 1.0)

    def _after_refusal(self, failure: Failure) -> float:
        self.refusals += 1
        wait = min(_FIRST * 2.0**self.refusals, _LONGEST)
        self._waited += max(wait, failure.wait or 0.0)
        asked = failure.wait is not None or self.refusals > self._limits.retries
        if asked and self._waited > self._patience:
            raise failure
        return wait * uniform(0.5, 1.0)  # while the site rests


def _deferred() -> Failure:
    return Failure("page_deferred", "not asked for: its site has answered no request for some time")
