"""Outages: a call is held while the judge or its server is away, and a training stops when too many rewards fail.

A trainer goes on with whatever it gets: an hour of failed rewards is an hour of steps without a gradient, or with a
wrong one.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Sequence

from adjudge.engine.config.reward import OutageConfig
from adjudge.engine.rewards.reward import Reward, RewardError
from adjudge.scoring.contract.reasons import CAUSES, Reason

__all__ = ["AWAY", "OutageStop", "Outages"]

AWAY: frozenset[Reason] = frozenset({"judge_unavailable", "server_unreachable"})
"""Why a reward fails while judge or server is away: trying again may help."""

WINDOW = 256
LEAST = 16  # rewards, before a share of them says anything
_PAUSE_S = 1.0


class OutageStop(RewardError):
    """More rewards failed than `reward.outage.stop_share` allows: the training is not worth going on with."""


class Outages:
    """Holds calls as `config` says, and counts the rewards that they gave. Any thread."""

    def __init__(self, config: OutageConfig) -> None:
        self._config = config
        self._last: deque[Reason | None] = deque(maxlen=WINDOW)

    async def held(self, score: Callable[[], Awaitable[list[Reward]]]) -> list[Reward]:
        """The rewards of `score`, called again while some fail because judge or server is away, for at most `hold_s`.

        Raises OutageStop.
        """
        rewards = await score()
        until = time.monotonic() + self._config.hold_s
        causes = AWAY
        while _lost(rewards, causes) and (left := until - time.monotonic()) > 0:
            causes = AWAY | {"deadline"}  # of a try in which the judge came back too late
            await asyncio.sleep(min(_PAUSE_S, left))
            rewards = await score()
        self.count(rewards)
        return rewards

    def count(self, rewards: Sequence[Reward]) -> None:
        """Count `rewards`. Raises OutageStop above the share, and then counts anew."""
        self._last.extend(one.reason if one.value is None else None for one in rewards)
        failed = Counter(reason for reason in self._last if reason and CAUSES[reason] == "infrastructure")
        share = self._config.stop_share
        if share is None or len(self._last) < LEAST or failed.total() <= share * len(self._last):
            return
        reasons = ", ".join(f"{reason} {count}" for reason, count in failed.most_common())
        counted = f"{failed.total()} of the last {len(self._last)}"
        self._last.clear()
        raise OutageStop(
            f"rewards: {counted} failed ({reasons}), more than outage.stop_share {share:g}; see to the judge and the "
            "reward server, then go on from the last checkpoint"
        )


def _lost(rewards: Sequence[Reward], causes: Collection[Reason]) -> bool:
    return any(one.value is None and one.reason in causes for one in rewards)
