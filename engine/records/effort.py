"""What judging took, by protocol: the tokens that the judge read and wrote."""

import msgspec

from adjudge.judges import Usage
from adjudge.scoring.contract.scorecard import Scorecard

__all__ = ["Effort", "Efforts"]


class Effort(msgspec.Struct, frozen=True):
    """Tokens over the scorecards of a protocol, of all their questions, asked now or answered from the store.

    A question that several scorecards share counts for each.
    """

    scorecards: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def more(self, usage: Usage) -> "Effort":
        """With another scorecard's."""
        return Effort(
            self.scorecards + 1,
            self.prompt_tokens + usage.prompt_tokens,
            self.completion_tokens + usage.completion_tokens,
        )


class Efforts:
    """Adds up what scorecards took, as they pass."""

    def __init__(self) -> None:
        self._by_protocol: dict[str, Effort] = {}

    def take(self, card: Scorecard) -> None:
        """One more scorecard."""
        before = self._by_protocol.get(card.protocol, Effort())
        self._by_protocol[card.protocol] = before.more(card.usage)

    def result(self) -> dict[str, Effort]:
        """By protocol, those that took nothing left out."""
        return {name: one for name, one in sorted(self._by_protocol.items()) if one.prompt_tokens}
