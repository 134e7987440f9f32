"""Which judge answers what: the one of `judge:`, unless `judges:` has another for a protocol or a medium."""

from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

import msgspec

from adjudge.engine.config.errors import ConfigError
from adjudge.engine.config.judge import JudgeConfig, Medium
from adjudge.engine.errors import nearest
from adjudge.scoring.contract.protocol import PublishedCalls, ScoringProtocol, ShowsMedia

__all__ = ["MEDIA", "Bench", "Seat", "check_names"]

MEDIA: tuple[str, ...] = get_args(Medium)


class Seat(msgspec.Struct, frozen=True, kw_only=True):
    """One judge of a run. `name` is its key in the configuration, `answers` the protocols and media that it judges.

    With `free_text` it is asked in benchmarks' own words alone, whose replies follow no schema.
    """

    name: str
    config: JudgeConfig
    answers: tuple[str, ...]
    free_text: bool = False

    @property
    def slots(self) -> int:
        """How many questions it takes at once; a panel as many as each of its members."""
        return min(one.max_in_flight for _, one in self.limited())

    @property
    def timeout_s(self) -> float:
        """Seconds until it has surely answered, or failed to."""
        return max(0.0 if one.backend == "lexical" else one.timeout_s for _, one in self.limited())

    def limited(self) -> Iterator[tuple[str, JudgeConfig]]:
        """What has limits of its own, by name: the judge, and each member of a panel. Raises ConfigError."""
        yield self.name, self.config
        if self.config.backend == "panel":
            for number, member in enumerate(self.config.panel()):
                yield f"{self.name}.members[{number}]", member


class Bench:
    """The judges that a run uses, each once (`seats`, by name), and which of them answers what.

    `default` answers about the `protocols` that have no judge of their own among the `others`. A judge for a medium
    takes the questions that carry it, of all protocols that may show it.
    """

    def __init__(
        self, default: JudgeConfig, others: Mapping[str, JudgeConfig], protocols: Sequence[ScoringProtocol]
    ) -> None:
        self.protocols = tuple(one.name for one in protocols)
        self._shown = {one.name: one.media for one in protocols if isinstance(one, ShowsMedia)}
        self._free_text = {one.name: isinstance(one, PublishedCalls) for one in protocols}
        shown = {medium for media in self._shown.values() for medium in media}
        wanted = [*self.protocols, *(medium for medium in MEDIA if medium in shown and medium in others)]
        found: dict[bytes, list[str]] = {}
        for answer in wanted:
            config = others.get(answer, default)
            found.setdefault(msgspec.json.encode(config, order="sorted"), []).append(answer)
        seats = [self._seat(answers, default, others) for answers in found.values()]
        self.seats = {seat.name: seat for seat in seats}
        self._by_answer = {answer: seat for seat in seats for answer in seat.answers}

    def _seat(self, answers: list[str], default: JudgeConfig, others: Mapping[str, JudgeConfig]) -> Seat:
        own = next((answer for answer in answers if answer in others), None)
        is_default = any(answer not in others for answer in answers)
        config = default if own is None else others[own]
        return Seat(
            name="judge" if is_default else f"judges.{own}",
            config=config.taking([answer for answer in answers if answer in MEDIA]),
            answers=tuple(answers),
            free_text=all(self._free_text.get(answer, False) for answer in answers),
        )

    def of(self, protocol: str) -> Seat:
        """The judge of a protocol. What is none of the run's protocols is the default's, or else the first one's."""
        first = next(iter(self.seats.values()))
        return self._by_answer.get(protocol) or self.seats.get("judge", first)

    def for_media(self, protocol: str) -> dict[str, Seat]:
        """The judges of media for a protocol: none that scores otherwise than its own judge does."""
        expects = self.of(protocol).config.expects
        return {
            medium: self._by_answer[medium]
            for medium in self._shown.get(protocol, ())
            if medium in self._by_answer and self._by_answer[medium].config.expects == expects
        }


def check_names(names: Sequence[str], protocols: Sequence[str]) -> None:
    """Raise ConfigError for a name in `judges:` that is neither an installed protocol nor a medium."""
    known = [*sorted(protocols), *MEDIA]
    for name in names:
        if name not in known:
            raise ConfigError(f"judges: unknown protocol or medium {name!r}; {nearest(name, known)}")
