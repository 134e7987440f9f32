"""`RewardClient`: the rewards of a server, for callers from any thread and any event loop.

Calls that follow each other within 2 ms are sent as one request, at most 20 ms after the first, grouped by task: a
trainer's many single rollouts cost the server one call. Requests that the server refuses for now are retried until the
deadline.
"""

import asyncio
import logging
import os
import random
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from itertools import groupby

import aiohttp
import msgspec

from adjudge.engine.config.reward import OutageConfig
from adjudge.engine.rewards.reward import Reward, RewardError, RewardItem, plain
from adjudge.engine.rewards.source import RewardSource
from adjudge.engine.rewards.tokens import worded
from adjudge.engine.serving.dialects import Failure, Rewards, Rollouts
from adjudge.engine.telemetry.http import TOKEN
from adjudge.judges.plural import plural
from adjudge.scoring.contract.reasons import Reason

_log = logging.getLogger(__name__)

QUIET_S = 0.002
GATHER_S = 0.02
BATCH = 512
BATCH_CHARS = 8_000_000
SLACK = 1.08  # times the deadline; the server itself answers within 1.05 times
_RETRY_S = 0.2


class RewardClient(RewardSource):
    """Rewards from the server at `url`; the token comes from ADJUDGE_TOKEN. Picklable.

    `deadline_s` holds for calls without a `deadline`, `outage` while judge or server is away. A reward that the server
    could not be asked for is None: server_unreachable if there was no connection, which is logged once with the URL and
    the error; judge_unavailable if it refused for now; deadline if it was late. Raises RewardError where trying again
    cannot help: a wrong token, or a request that the server refuses.
    """

    def __init__(self, url: str, deadline_s: float = 30.0, outage: OutageConfig | None = None) -> None:
        self.url = url.rstrip("/")
        super().__init__("adjudge reward client", lambda: _sender(self.url, deadline_s), deadline_s, outage)

    def __reduce__(self) -> tuple[type["RewardClient"], tuple[str, float, OutageConfig]]:
        """Only the address travels."""
        return RewardClient, (self.url, self.deadline_s, self.outage)


class _Waiting(msgspec.Struct):
    """A rollout that waits for the next request, and for its reward."""

    item: RewardItem
    until: float
    priority: int
    step: int | None
    reward: "asyncio.Future[Reward]"


@asynccontextmanager
async def _sender(url: str, deadline_s: float) -> AsyncIterator["_Sender"]:
    token = os.environ.get(TOKEN, "").strip()
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    async with aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(total=None)) as session:
        sender = _Sender(session, f"{url}/v1/rewards", deadline_s)
        try:
            yield sender
        finally:
            await sender.close()


class _Sender:
    """Gathers rollouts and sends them, in one event loop."""

    def __init__(self, session: aiohttp.ClientSession, url: str, deadline_s: float) -> None:
        self._session = session
        self._url = url
        self._deadline_s = deadline_s
        self._waiting: list[_Waiting] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._is_away = False

    async def score(
        self, items: list[RewardItem], *, deadline: float | None, priority: int, step: int | None
    ) -> list[Reward]:
        """The rewards of `items`; None (deadline) for those that have not come 8 % after `deadline` seconds."""
        seconds = self._deadline_s if deadline is None else deadline
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        told = await worded(items)
        mine = [_Waiting(item, until, priority, step, loop.create_future()) for item in told]
        if not mine:
            return []
        if not self._waiting:
            loop.call_later(QUIET_S, self._gather, loop.time() + GATHER_S, len(items))
        self._waiting += mine
        try:
            await asyncio.wait([each.reward for each in mine], timeout=seconds * SLACK)
            return [each.reward.result() if each.reward.done() else _failed("deadline") for each in mine]
        finally:
            for each in mine:
                each.reward.cancel()

    async def close(self) -> None:
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)

    def _gather(self, latest: float, seen: int) -> None:
        """Send what waits, unless more has come since `seen` waited: then a little later."""
        loop = asyncio.get_running_loop()
        if len(self._waiting) > seen and loop.time() < latest:
            loop.call_later(QUIET_S, self._gather, latest, len(self._waiting))
        else:
            self._send()

    def _send(self) -> None:
        """Send what waits: rollouts of one task side by side, each request of one priority, step and bounded size."""
        wanted = [each for each in self._waiting if not each.reward.done()]
        self._waiting = []
        wanted.sort(key=lambda each: (_call_of(each), each.item.named or "", each.item.asked or ""))
        for _, same in groupby(wanted, key=_call_of):
            for batch in _batches(same):
                task = asyncio.ensure_future(self._deliver(batch))
                self._sending.add(task)
                task.add_done_callback(self._sending.discard)

    async def _deliver(self, batch: list[_Waiting]) -> None:
        """Give each waiting call its reward, or the error; stop asking when all of them have gone."""
        asked = asyncio.ensure_future(self._ask(batch))
        left = asyncio.gather(*(each.reward for each in batch), return_exceptions=True)
        try:
            await asyncio.wait((asked, left), return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                return
            error = asked.exception()
            for place, each in enumerate(batch):
                if each.reward.done():
                    continue
                if error is not None:
                    each.reward.set_exception(error)
                else:
                    each.reward.set_result(asked.result()[place])
        finally:
            asked.cancel()
            for each in batch:
                each.reward.cancel()

    async def _ask(self, batch: list[_Waiting]) -> list[Reward]:
        """The server's rewards for `batch`, or why it gave none before the last deadline."""
        loop = asyncio.get_running_loop()
        until = max(each.until for each in batch)
        reason: Reason = "judge_unavailable"
        while (left := until - loop.time()) > 0:
            try:
                return await self._post(batch, left)
            except _LaterError as later:
                reason = later.reason
                await asyncio.sleep(min(later.seconds, left))
        return [_failed(reason)] * len(batch)

    async def _post(self, batch: list[_Waiting], left: float) -> list[Reward]:
        body = Rollouts([each.item for each in batch], left, batch[0].priority, batch[0].step)
        try:
            async with self._session.post(
                self._url, data=msgspec.json.encode(body, enc_hook=plain)
            ) as response:
                content = await response.read()
                self._say(None)
                if response.status == 200:
                    return _rewards(content, len(batch))
                if response.status in (429, 502, 503, 504):
                    raise _LaterError(_seconds(response.headers.get("Retry-After", "")), "judge_unavailable")
                raise RewardError(f"{self._url}: status {response.status}: {_said(content)}")
        except (aiohttp.ClientError, OSError) as error:
            self._say(str(error) or type(error).__name__)
            raise _LaterError(_seconds(""), "server_unreachable") from error

    def _say(self, error: str | None) -> None:
        """Log that the server cannot be reached, or can be again."""
        if error is not None and not self._is_away:
            _log.warning(
                "rewards: %s cannot be reached (%s); rewards are server_unreachable", self._url, error
            )
        elif error is None and self._is_away:
            _log.warning("rewards: %s can be reached again", self._url)
        self._is_away = error is not None


class _LaterError(RuntimeError):
    """The server cannot answer now; try again in `seconds`."""

    def __init__(self, seconds: float, reason: Reason) -> None:
        super().__init__()
        self.seconds = seconds
        self.reason = reason


def _call_of(each: _Waiting) -> tuple[int, int]:
    """Shared by the rollouts of one request: priority and step."""
    return each.priority, -1 if each.step is None else each.step


def _failed(reason: Reason) -> Reward:
    return Reward(value=None, status="unscored", reason=reason)


def _batches(waiting: Iterable[_Waiting]) -> Iterator[list[_Waiting]]:
    """Requests of a bounded size; rollouts of one task are divided only if they are too many for one."""
    batch: list[_Waiting] = []
    chars = 0
    for _, same in groupby(waiting, key=lambda each: (each.item.named, each.item.asked)):
        sized = [(each, len(msgspec.json.encode(each.item, enc_hook=plain))) for each in same]
        if batch and (
            len(batch) + len(sized) > BATCH or chars + sum(size for _, size in sized) > BATCH_CHARS
        ):
            yield batch
            batch, chars = [], 0
        for each, size in sized:
            if batch and (len(batch) == BATCH or chars + size > BATCH_CHARS):
                yield batch
                batch, chars = [], 0
            batch.append(each)
            chars += size
    if batch:
        yield batch


def _seconds(header: str) -> float:
    asked = float(header) if header.isascii() and header.isdigit() else 0.0
    return asked + random.uniform(0.0, _RETRY_S)


def _rewards(content: bytes, count: int) -> list[Reward]:
    try:
        rewards = msgspec.json.decode(content, type=Rewards).rewards
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RewardError(f"the reply is not a list of rewards: {error}") from error
    if len(rewards) != count:
        raise RewardError(f"{plural(len(rewards), 'reward')} came back for {plural(count, 'rollout')}")
    return rewards


def _said(content: bytes) -> str:
    try:
        return msgspec.json.decode(content, type=Failure).error[:300]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return content[:300].decode("utf-8", "replace")
