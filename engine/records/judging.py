"""Who judged what in a run: which judge stands behind a protocol's scores."""

from collections.abc import Mapping

import msgspec

from adjudge.engine.config.bench import Bench
from adjudge.judges import JudgeIdentity

__all__ = ["Judging"]


class Judging(msgspec.Struct, frozen=True):
    """The `judge` of a run, unless `judges` has another for a protocol or a medium. Empty where one judges all.

    `media` are by protocol those media that its questions may carry and that another judge takes.
    """

    judge: JudgeIdentity
    judges: dict[str, JudgeIdentity] = {}
    media: dict[str, tuple[str, ...]] = {}

    @classmethod
    def of(cls, bench: Bench, by_name: Mapping[str, JudgeIdentity]) -> "Judging":
        """What the judges of `bench` judge, whose identities are given by their names."""
        if len(bench.seats) == 1:
            (only,) = by_name.values()
            return cls(only)
        judges = {answer: by_name[seat.name] for seat in bench.seats.values() for answer in seat.answers}
        media = {name: tuple(bench.for_media(name)) for name in bench.protocols if bench.for_media(name)}
        return cls(by_name.get("judge", next(iter(by_name.values()))), judges, media)

    def protocol(self, name: str) -> JudgeIdentity:
        """The judge of a protocol's questions."""
        return self.judges.get(name, self.judge)

    def protocol_media(self, name: str) -> dict[str, JudgeIdentity]:
        """The judges of those of a protocol's questions that carry a medium."""
        return {medium: self.judges[medium] for medium in self.media.get(name, ())}

    def all_of(self, protocol: str) -> tuple[JudgeIdentity, ...]:
        """Every judge of a protocol, its own first, each once."""
        every = (self.protocol(protocol), *self.protocol_media(protocol).values())
        return tuple(dict.fromkeys(every))

    def said_of(self, protocol: str) -> str:
        """The judges of a protocol in words: `A`, or `A, image: B`."""
        own = self.protocol(protocol)
        others = {medium: one for medium, one in self.protocol_media(protocol).items() if one != own}
        return ", ".join([own.name, *(f"{medium}: {one.name}" for medium, one in others.items())])

    @property
    def each(self) -> dict[JudgeIdentity, tuple[str, ...]]:
        """Every judge that was used, with the protocols and media that it judged; nothing for one that judged all."""
        found: dict[JudgeIdentity, tuple[str, ...]] = {}
        for answer, judge in self.judges.items():
            found[judge] = (*found.get(judge, ()), answer)
        return found or {self.judge: ()}

    @property
    def said(self) -> str:
        """All judges in words: `A`, or `A (race), B (fact, image)`."""
        return ", ".join(
            f"{judge.name} ({', '.join(answers)})" if answers else judge.name
            for judge, answers in self.each.items()
        )
