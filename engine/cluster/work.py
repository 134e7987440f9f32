"""The work of one run: cases to be scored, and the scorecards that came back."""

import asyncio
from collections.abc import Iterable

from adjudge.engine.cluster.messages import Delivery
from adjudge.engine.cluster.shards import Shards
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import ScoringProtocol, by_case, unscored
from adjudge.scoring.contract.scorecard import Scorecard

__all__ = ["Work"]


class Work:
    """`cases` under `protocols`: where each case is (`shards`), and a queue of scorecards that `end` closes."""

    def __init__(self, cases: Iterable[Case], protocols: tuple[ScoringProtocol, ...]) -> None:
        self.shards = Shards(cases)
        self.complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._protocols_of = by_case(protocols)
        self._cards: asyncio.Queue[Scorecard | None] = asyncio.Queue()

    def check_complete(self) -> None:
        """Set `complete` if every case is written."""
        if self.shards.is_done and not self.complete.done():
            self.complete.set_result(None)

    def take_in(self, worker: str, delivery: Delivery) -> None:
        """Take in what `worker` has finished and written."""
        for number in delivery.finished:
            self.shards.finish(worker, number)
        for done in delivery.done:
            if self.shards.write(worker, done.case, done.cards):
                for card in done.cards:
                    self._cards.put_nowait(card)

    def lose(self, worker: str) -> None:
        """Return the cases of a dead `worker` to the pool; those that killed too many workers get scorecards here."""
        for case in self.shards.lose(worker):
            for protocol in self._protocols_of(case):
                self._cards.put_nowait(unscored(protocol, case, "worker_died"))

    def end(self) -> None:
        """Let `next_card` return None after the cards already queued."""
        self._cards.put_nowait(None)

    async def next_card(self) -> Scorecard | None:
        """The next scorecard, or None at the end."""
        return await self._cards.get()
