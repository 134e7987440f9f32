"""The section `judge:` of a configuration: who answers the questions, and how it is reached.

Which judge answers what: the one of `judge:`, unless `judges:` has another for a protocol or a medium.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec

from adjudge.engine.config.redaction import credentials, keep_secret, named_credentials
from adjudge.engine.config.settings import ConfigError, Count, Seconds
from adjudge.engine.errors import nearest
from adjudge.judges.judgment import (
    KEY_VARIABLE,
    THINKING_TOKENS,
    Combination,
    FromEnvironment,
    Omitted,
    Profile,
    Scoring,
    is_server_address,
    shown_url,
)
from adjudge.scoring.contract.protocol import PublishedCalls, ScoringProtocol, ShowsMedia

__all__ = ["PATIENCE_S", "Bench", "JudgeConfig", "Seat", "check_names", "rooted_judge"]

Medium = Literal["image", "audio", "video"]
EnvironmentName = Annotated[str, msgspec.Meta(pattern=r"^[A-Z][A-Z0-9_]{0,99}$")]

HeaderName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")]
HeaderValue = Annotated[str, msgspec.Meta(pattern=r"^[ -~]{0,2000}$")]

PATIENCE_S = 1800.0
_SENT = frozenset(get_args(Omitted))
_NEVER_ADDED = frozenset({"model", "messages", "stream", "n"})
_HEADERS = frozenset({"extra_headers", "headers"})


# Those of the connection itself.
_OUR_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "te",
        "transfer-encoding",
        "upgrade",
    }
)


class JudgeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The judge. A string `SPEC` in the file is short for this mapping (see `JudgeConfig.from_spec`)."""

    backend: Literal["lexical", "openai", "vllm", "panel"] = "lexical"
    """`lexical` is embedded, `openai` any compatible server, `vllm` an engine in this process, `panel` several
    judges."""
    url: str = ""
    """The server's address, up to `/v1`."""
    urls: list[str] = []
    """Several servers of one model; questions about one text go to one of them."""
    model: str = ""
    """The model's name on the server; for `vllm`, a name or a folder."""
    revision: str = ""
    """Which weights these are; part of the judge's identity, so of the keys of its answers."""
    max_context: Count | None = None
    """The judge's window in tokens, where the server does not tell."""
    max_in_flight: Count = 256
    """Most requests at once, to all servers together."""
    replicas: Count | None = None
    """Engines on a cluster (`vllm`)."""
    api_key_env: EnvironmentName = KEY_VARIABLE
    """The environment variable that holds the server's key."""
    headers: dict[HeaderName, FromEnvironment | HeaderValue] = {}
    """Sent with every request, beside the key: `{NAME: {env: VARIABLE}}`, or a value that is no secret."""
    request: dict[str, Any] = {}
    """Added to the body of every request."""
    omit: list[Omitted] = []
    """Left out of every request, for servers that refuse it."""
    stream: bool = False
    """Whether answers are sent as events, for servers that demand it and gateways that cut long waits."""
    strict_identity: bool = False
    """Whether a run ends where another model answers than the one that was tried."""
    requests_per_minute: Count | None = None
    """Most requests a minute."""
    tokens_per_minute: Count | None = None
    """Most tokens a minute, of prompts and answers."""
    tensor_parallel: Count = 1
    """GPUs per engine (`vllm`)."""
    engine: dict[str, Any] = {}
    """Options passed to vLLM's engine as they are."""
    temperature: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0.0
    """Of sampling; 0 takes the most likely token."""
    scoring: Scoring = "sampled"
    """`sampled` takes the answer as written, `expected` the mean over the probabilities of all labels."""
    profile: Profile = "exact"
    """`fast` saves a judge's tokens where that may change an answer; metrics then have names of their own."""
    thinking: bool = False
    """Whether the model thinks before it answers."""
    thinking_tokens: Count = THINKING_TOKENS
    """The most tokens of thought; twice as many once, if that cuts it off."""
    media: list[Medium] = []
    """What the model takes beside text."""
    retries: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 5
    """After the first attempt, for failures that may pass."""
    timeout_s: Seconds = 600.0
    """Seconds for one request."""
    patience_s: Seconds = PATIENCE_S
    """A run whose judge no longer answers pauses, and ends if the judge is not back after so many seconds."""
    members: list["JudgeConfig | str"] = []
    """The judges of a panel, at least two."""
    combination: Combination = "median"
    """How a panel's answers become one."""

    def __post_init__(self) -> None:
        keep_secret(self.api_key_env)
        for url in (self.url, *self.urls):
            if url and not is_server_address(url):
                raise ValueError(f"url: {shown_url(url)!r} must look like http://127.0.0.1:8000/v1")
        for name in self.request:
            if name.lower() in _HEADERS:
                raise ValueError(
                    f"request: {name}: the key is sent for you; set api_key_env to a variable's name"
                )
            if name in _NEVER_ADDED or (name in _SENT and name not in self.omit):
                fix = f"add {name} to omit: first" if name in _SENT else "leave it out"
                raise ValueError(f"request: {name}: every request has its own; {fix}")
        for name, value in self.headers.items():
            if name.lower() in _OUR_HEADERS:
                raise ValueError(f"headers: {name}: every request has its own; leave it out")
            if isinstance(value, FromEnvironment):
                keep_secret(value.env)
            elif next(named_credentials({name: value}, "headers"), None) is not None:
                raise ValueError(
                    f"headers: the value of {name} belongs in the environment; write {{env: VARIABLE}} for it"
                )
        sends = self.request or self.omit or self.headers or self.stream or self.strict_identity
        if sends and self.backend != "openai":
            raise ValueError(
                "request:, omit:, headers:, stream: and strict_identity: need backend openai, which sends requests; "
                "leave them out"
            )

        if self.profile == "fast" and (why := self._slow()) is not None:
            raise ValueError(f"profile: fast: {why}")

    def _slow(self) -> str | None:
        """Why this judge has no fast profile, and what to do; None if it has one."""
        match self:
            case JudgeConfig(backend="lexical"):
                return "the lexical judge has none; leave profile out"
            case JudgeConfig(backend="panel"):
                return "set it for members of the panel"
            case JudgeConfig(thinking=True):
                return "a model that thinks cannot skip its thoughts; leave thinking out"
            case JudgeConfig(scoring="expected"):
                return "chooses by itself which scores are expected values; leave scoring out"
            case JudgeConfig(stream=True):
                return "a stream has no probabilities of tokens; leave stream out"
            case JudgeConfig(omit=omitted) if "response_format" in omitted:
                return "needs replies that keep to a schema; take response_format out of omit"
        return None

    def profiled(self, profile: Profile) -> "JudgeConfig":
        """This judge, or each member of the panel, with the `profile`, where it has that."""
        if self.backend == "panel":
            members = [one.profiled(profile) for one in self.panel()]
            return self if members == [*self.panel()] else msgspec.structs.replace(self, members=members)
        return self if self._slow() is not None else msgspec.structs.replace(self, profile=profile)

    @property
    def prefix(self) -> str:
        """What the names of metrics by this judge begin with: answers in another way are another measurement."""
        judges = self.panel() if self.backend == "panel" else (self,)
        if any(one.profile == "fast" for one in judges):
            return "fast."
        return "expected." if any(one.scoring == "expected" for one in judges) else ""

    @property
    def is_rated(self) -> bool:
        """Whether requests or tokens per minute are limited."""
        return self.requests_per_minute is not None or self.tokens_per_minute is not None

    def panel(self) -> tuple["JudgeConfig", ...]:
        """The panel's members. Raises ConfigError for fewer than two, and for a panel inside a panel."""
        found = tuple(map(JudgeConfig.of, self.members))
        if len(found) < 2 or any(member.backend == "panel" for member in found):
            raise ConfigError("judge: backend panel needs members: at least two judges, none of them a panel")
        return found

    def taking(self, media: Sequence[str]) -> "JudgeConfig":
        """This judge, which takes `media` too."""
        if not media:
            return self
        members = [one.taking(media) for one in self.panel()] if self.backend == "panel" else self.members
        return msgspec.structs.replace(
            self, media=list(dict.fromkeys([*self.media, *media])), members=members
        )

    def each(self) -> Iterator["JudgeConfig"]:
        """Every server or engine by itself: a panel's members, and each of several `urls`. Raises ConfigError."""
        if self.backend == "panel":
            for member in self.panel():
                yield from member.each()
        elif self.urls:
            for url in self.urls:
                yield msgspec.structs.replace(self, url=url, urls=[])
        else:
            yield self

    @classmethod
    def of(cls, given: "JudgeConfig | str", key: str = "judge") -> "JudgeConfig":
        """What the configuration gives under `key`, a mapping or a SPEC. Raises ConfigError."""
        return cls.from_spec(given, key) if isinstance(given, str) else given

    @classmethod
    def from_spec(cls, spec: str, key: str = "judge") -> "JudgeConfig":
        """`lexical`, `openai:URL#MODEL` or `vllm:MODEL`, a name or a folder. Raises ConfigError."""
        if (found := credentials(spec)) is not None:
            raise ConfigError(
                f"{key}: the address contains {found}; remove it and set the environment variable OPENAI_API_KEY"
            )
        if spec == "lexical":
            return cls()
        backend, _, rest = spec.partition(":")
        if backend == "openai":
            url, _, model = rest.partition("#")
            if url.startswith(("http://", "https://")) and model:
                return cls(backend="openai", url=url, model=model)
        if backend == "vllm" and rest:
            return cls(backend="vllm", model=rest)
        raise ConfigError(
            f"{key}: unknown judge {spec!r}; write lexical, openai:http://HOST:PORT/v1#MODEL or vllm:MODEL_OR_FOLDER"
        )


def judge_in_full(judge: Any) -> Any:
    """`judge` as the configuration has it, with the backend that its other keys mean: a server's, or a panel's."""
    match judge:
        case {"members": [*members]}:
            return {"backend": "panel", **judge, "members": [judge_in_full(member) for member in members]}
        case {"url": _} | {"urls": _}:
            return {"backend": "openai", **judge}
    return judge


def check_server(judge: JudgeConfig, key: str) -> None:
    """Raises ConfigError if `judge`, or one of its panel, is the lexical one although it is given a server or model."""
    if judge.backend == "panel":
        for place, member in enumerate(judge.panel(), 1):
            check_server(member, f"{key}: member {place}")
    elif judge.backend == "lexical" and (judge.url or judge.urls):
        raise ConfigError(f"{key}: backend lexical asks no server; write backend: openai, or leave url out")
    elif judge.backend == "lexical" and judge.model:
        raise ConfigError(
            f"{key}: a model needs what runs it; add url: of its server, or backend: vllm, or leave model out"
        )


def rooted_judge(judge: Any, folder: Path) -> Any:
    """`judge` with its model put below `folder`, where that is a folder."""

    def rooted(model: object) -> object:
        is_folder = isinstance(model, str) and model and (folder / model).is_dir()
        return f"{folder / str(model)}" if is_folder else model

    match judge:
        case str() if judge.startswith("vllm:"):
            return f"vllm:{rooted(judge.removeprefix('vllm:'))}"
        case {"members": [*members]}:
            return {**judge, "members": [rooted_judge(member, folder) for member in members]}
        case {"backend": "vllm", "model": model}:
            return {**judge, "model": rooted(model)}
    return judge


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
        self.default = default
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

    @property
    def judged(self) -> dict[str, JudgeConfig]:
        """Who answers what, by the names of protocols and media."""
        return {answer: seat.config for answer, seat in self._by_answer.items()}

    def of(self, protocol: str) -> Seat:
        """The judge of a protocol. What is none of the run's protocols is the default's, or else the first one's."""
        first = next(iter(self.seats.values()))
        return self._by_answer.get(protocol) or self.seats.get("judge", first)

    def for_media(self, protocol: str) -> dict[str, Seat]:
        """The judges of media for a protocol: none that scores otherwise than its own judge does."""
        prefix = self.of(protocol).config.prefix
        return {
            medium: self._by_answer[medium]
            for medium in self._shown.get(protocol, ())
            if medium in self._by_answer and self._by_answer[medium].config.prefix == prefix
        }


def check_names(names: Sequence[str], protocols: Sequence[str]) -> None:
    """Raise ConfigError for a name in `judges:` that is neither an installed protocol nor a medium."""
    known = [*sorted(protocols), *MEDIA]
    for name in names:
        if name not in known:
            raise ConfigError(f"judges: unknown protocol or medium {name!r}; {nearest(name, known)}")
