"""Limits how many calls run at once, and chooses the next one."""

import asyncio
import heapq
from itertools import count


class Slots:
    """`total` slots, given to callers: by priority (lower first), then by arrival. One event loop."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._free = total
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = count()

    async def acquire(self, priority: int = 0) -> None:
        """Take a slot, waiting for one if need be. A caller that is cancelled while waiting holds none."""
        if self._free > 0:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (priority, next(self._arrivals), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the slot was handed over before the cancellation arrived
                self.release()
            raise

    def release(self) -> None:
        """Give a slot back: to the first caller that still waits, else to the next that comes."""
        self._free += 1
        self._hand_out()

    @property
    def in_use(self) -> int:
        """How many are taken; more than `total` for a while after `total` was lowered."""
        return self.total - self._free

    def resize(self, total: int) -> None:
        """Change the number of slots to `total`. Those taken stay taken until they are given back."""
        self._free += total - self.total
        self.total = total
        self._hand_out()

    def _hand_out(self) -> None:
        while self._free > 0 and self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                self._free -= 1
