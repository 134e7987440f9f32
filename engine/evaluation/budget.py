"""The limit on what a run spends, in questions or money; at the limit the run stops."""

import asyncio
import math

import msgspec

from adjudge.engine.config.run import Price, RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.errors import LimitReached
from adjudge.judges import Usage


def cost_of(usage: Usage, price: Price | None) -> float:
    """The cost of the tokens of `usage`; 0 without a price."""
    if price is None:
        return 0.0
    return (
        usage.prompt_tokens * price.cost_per_million_prompt_tokens
        + usage.completion_tokens * price.cost_per_million_completion_tokens
    ) / 1e6


class Spent(msgspec.Struct, frozen=True):
    """How many questions all judges of a run were asked, and what that cost by the configuration's prices."""

    questions: int = 0
    cost: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.questions + other.questions, self.cost + other.cost)

    def limit(self, config: RunConfig) -> LimitReached | None:
        """The limit of `config` that is reached, or None."""
        if config.max_questions is not None and self.questions >= config.max_questions:
            return LimitReached(f"max_questions: {self.questions:,} questions were asked")
        if config.max_cost is not None and self.cost >= config.max_cost:
            return LimitReached(f"max_cost: {self.cost:g} was spent")
        return None


class Budget:
    """A run's spending limit, and what it has `spent`. An outstanding question is expected to cost the mean so far."""

    def __init__(self, config: RunConfig) -> None:
        self.spent = Spent()
        self._config = config
        self._out = 0
        self._settled = asyncio.Event()

    def price_of(self, judge: str) -> Price | None:
        """The price of the judge of that name. Raises ConfigError if cost is limited and there is none."""
        price = self._config.prices.get(judge)
        if price is None and self._config.max_cost is not None:
            raise ConfigError(f"max_cost: prices: has no price for {judge}; add one, or leave max_cost out")
        return price

    async def begin(self) -> None:
        """Count one more question. Raises LimitReached, once all that is out is answered."""
        while self._out and (self.spent.limit(self._config) is not None or self._may_exceed()):
            self._settled.clear()
            await self._settled.wait()
        if (reached := self.spent.limit(self._config)) is not None:
            raise reached
        self.spent += Spent(1)
        self._out += 1

    def _may_exceed(self) -> bool:
        """Whether outstanding questions may cost all that is left; unknown before the first answer."""
        if self._config.max_cost is None:
            return False
        answered = self.spent.questions - self._out
        mean = self.spent.cost / answered if answered else math.inf
        return self.spent.cost + self._out * mean >= self._config.max_cost

    def end(self, cost: float) -> None:
        """Count what the answer cost."""
        self.spent += Spent(0, cost)
        self._out -= 1
        self._settled.set()
