"""Scorecards that need not be made again: everything that decided them is as it was."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

import adjudge.judges
import adjudge.scoring
from adjudge.engine.store import JudgmentStore
from adjudge.engine.store.kept_cards import KeptCards
from adjudge.judges import JudgeIdentity
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import PublishedCalls, ScoringProtocol
from adjudge.scoring.contract.scorecard import Scorecard

__all__ = ["Recall"]

_OWN = f"{adjudge.scoring.__name__}."
_NUMERIC = ("msgspec", "numba", "numpy", "scipy")  # numbers may differ between their versions
_REMEMBERED = 64  # the reports of one task come one after the other


class Recall:
    """Finds scorecards in `cards` by a key of all that decides them, as long as `judgments` has what they rest on.

    That is our code, the protocol with its options, the `judges` of a protocol, and `ambient`: all else that a run's
    configuration adds (prompts, files of criteria). Protocols from outside are not known to depend on nothing else, and
    those that ask in a benchmark's own words depend on its checkout: theirs are always made anew.
    """

    def __init__(
        self,
        cards: KeptCards,
        judgments: JudgmentStore,
        protocols: Iterable[ScoringProtocol],
        judges: Callable[[str], Sequence[JudgeIdentity]],
        ambient: object,
    ) -> None:
        self._cards = cards
        self._judgments = judgments
        self._static = {
            one.name: _digest([_code(), ambient, type(one).__qualname__, one, judges(one.name)])
            for one in protocols
            if _is_known(one)
        }
        self._digests: dict[int, tuple[object, bytes]] = {}

    def key(self, case: Case, protocol: ScoringProtocol) -> bytes | None:
        """The 16-byte key of the scorecard of `case`, or None where something else may decide it."""
        static = self._static.get(protocol.name)
        if static is None:
            return None
        told = [case.task, case.report] if case.rival is None else [case.task, case.report, case.rival]
        try:
            shown = [self._of(one) for one in told]
        except UnicodeError:  # a lone surrogate, which has no bytes to hash
            return None
        return hashlib.blake2b(
            b"".join([static, case.repeat.to_bytes(4, "big"), *shown]), digest_size=16
        ).digest()

    async def cards(self, keys: Sequence[bytes | None]) -> list[Scorecard | None]:
        """Of each of `keys`, its scorecard, if it and all its judgments are in the store. Raises StoreError."""
        found = dict.fromkeys(key for key in keys if key is not None)
        stored = [card for card in await self._cards.get(list(found)) if card is not None]
        held = self._judgments.holds(card.judgments for card in stored)
        kept = {bytes.fromhex(card.key): card for card, whole in zip(stored, held, strict=True) if whole}
        return [None if key is None else kept.get(key) for key in keys]

    def _of(self, shown: object) -> bytes:
        """The digest of a task or a report, each made once for the protocols and reports that come together."""
        known = self._digests.get(id(shown))
        if known is not None:
            return known[1]
        if len(self._digests) >= _REMEMBERED:
            del self._digests[next(iter(self._digests))]
        made = _digest(shown)
        self._digests[id(shown)] = shown, made
        return made


def _is_known(protocol: ScoringProtocol) -> bool:
    kind = type(protocol)
    return (
        kind.__module__.startswith(_OWN)
        and issubclass(kind, msgspec.Struct)
        and not isinstance(protocol, PublishedCalls)
    )


def _digest(what: Any) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(what, order="deterministic"), digest_size=16).digest()


@cache
def _code() -> str:
    """A digest of everything of ours that makes a scorecard of answers."""
    found = hashlib.blake2b(digest_size=16)
    found.update(repr([(name, version(name)) for name in _NUMERIC]).encode())
    for package in (adjudge.scoring, adjudge.judges):
        folder = Path(package.__path__[0])
        for file in sorted(folder.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                found.update(f"{file.relative_to(folder)} {file.stat().st_size}\n".encode())
                found.update(file.read_bytes())
    return found.hexdigest()
