"""Which verdicts people are shown, and in which order.

The sample is balanced over protocols, kinds, systems and the judge's verdicts: it takes one of each stratum in turn,
the items of a stratum in random order. So it is drawn at random within each stratum, wherever a rater stops, and a
larger sample contains a smaller one.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence

from adjudge.engine.records.items import Item, Stratum

__all__ = ["Sample", "drawn"]


def drawn(items: Iterable[Item], number: int, seed: int) -> list[Item]:
    """`number` of `items`, or all if there are fewer, in the order in which they are shown."""
    strata: dict[Stratum, list[Item]] = defaultdict(list)
    for item in items:
        strata[item.stratum].append(item)
    turns: list[tuple[int, str, Item]] = []
    for stratum, own in strata.items():
        own.sort(key=lambda item: _random(seed, item.id))
        turns += [(turn, _random(seed, turn, *stratum), item) for turn, item in enumerate(own)]
    turns.sort(key=lambda turn: turn[:2])
    return [item for _, _, item in turns[:number]]


class Sample:
    """The `items` of a sample and who labels which: the share `overlap` is for every rater, the others for one each."""

    def __init__(self, items: Sequence[Item], overlap: float) -> None:
        self.items = {item.id: item for item in items}
        everybody = [
            int((place + 1) * overlap + 1e-9) > int(place * overlap + 1e-9) for place in range(len(items))
        ]
        self.shared = {item.id for item, shared in zip(items, everybody, strict=True) if shared}

    def order(self, rater: str) -> list[Item]:
        """The order in which `rater` is shown the items; those for one rater begin at a place of each rater's own."""
        alone = [item for item in self.items.values() if item.id not in self.shared]
        start = int(_random(0, rater), 16) % len(alone) if alone else 0
        turned = iter(alone[start:] + alone[:start])
        return [item if item.id in self.shared else next(turned) for item in self.items.values()]


def _random(seed: int, *names: object) -> str:
    """A random number in hexadecimal digits, the same wherever it is drawn."""
    text = "\x1f".join(map(str, (seed, *names)))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
