"""One configuration: a YAML file, overridden by the command line, checked before anything runs."""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml
from adjudge.engine.formula import Formula, FormulaError
from adjudge.engine.reward_config import RewardConfig
from adjudge.fetchers.frames import Extractor
from adjudge.fetchers.guard import Guard
from adjudge.fetchers.limits import DEFAULT_LIMITS, DEFAULT_TIMEOUTS, Limits, Timeouts
from adjudge.judges.panel import Combination
from adjudge.judges.vllm import Scoring
from adjudge.scoring.expected import expected
from adjudge.scoring.protocol import ScoringProtocol, installed_protocols

__all__ = ["ClusterConfig", "ConfigError", "FetchConfig", "JudgeConfig", "Price", "RunConfig", "StopConfig"]

Count = Annotated[int, msgspec.Meta(ge=1)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e9)]  # finite: no clock waits for ever


class ConfigError(ValueError):
    """A configuration cannot be used: what, where, and how to mend it, in one line."""


class JudgeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who judges. A string `SPEC` in the file is short for this mapping (see `JudgeConfig.from_spec`)."""

    backend: Literal["lexical", "openai", "vllm", "panel"] = "lexical"
    url: str = ""
    urls: list[str] = []
    model: str = ""
    revision: str = ""
    max_context: Count | None = None
    max_in_flight: Count = 256
    replicas: Count | None = None
    tokens_per_minute: Count | None = None
    tensor_parallel: Count = 1
    engine: dict[str, Any] = {}
    temperature: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0.0
    scoring: Scoring = "sampled"
    thinking: bool = False
    media: list[Literal["image", "audio", "video"]] = []
    retries: Annotated[int, msgspec.Meta(ge=0)] = 5
    timeout_s: Seconds = 600.0
    members: list["JudgeConfig | str"] = []
    combination: Combination = "median"

    @property
    def expects(self) -> bool:
        """Whether scores are expected ones, of a panel whether any member's are."""
        return self.scoring == "expected" or (
            self.backend == "panel" and any(m.expects for m in self.panel())
        )

    def panel(self) -> tuple["JudgeConfig", ...]:
        """The panel's members. Raises ConfigError for fewer than two, and for a panel inside a panel."""
        found = tuple(JudgeConfig.from_spec(one) if isinstance(one, str) else one for one in self.members)
        if len(found) < 2 or any(member.backend == "panel" for member in found):
            raise ConfigError("judge: backend panel needs members: of at least two judges that are no panels")
        return found

    @classmethod
    def from_spec(cls, spec: str) -> "JudgeConfig":
        """`lexical`, `openai:URL#MODEL` or `vllm:MODEL`, a name or a folder. Raises ConfigError."""
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
            f"judge: {spec!r} is no judge; write lexical, openai:http://HOST:PORT/v1#MODEL or vllm:MODEL_OR_FOLDER"
        )


class FetchConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where pages come from: the network, a snapshot folder (or, without one, what the store holds), or nowhere."""

    mode: Literal["live", "snapshot", "off"] = "live"
    snapshot: str | None = None
    extractor: Extractor = "trafilatura"
    allow: list[str] = []
    limits: Limits = DEFAULT_LIMITS
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    contact: str = ""
    robots: bool = False

    def __post_init__(self) -> None:
        Guard(self.allow)  # raises ValueError for an entry that is no address

    @property
    def reachable(self) -> list[str]:
        """The addresses that the guard lets reports lead to."""
        return self.allow if self.mode == "live" else []


class ClusterConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where evaluators run: `none` (this process), `local` (a small Ray on this machine), or a Ray head's address.

    A string in the file is short for `address`. `evaluators` is how many there are (None: one a CPU of the cluster);
    `fetchers` likewise for live pages. Each takes `cpus` of Ray's logical CPUs; a judge's replica
    takes `judge_resources` by their names in Ray (GPU: 1), or `cpus` as well. What was answered is written every
    `flush_seconds`. A worker that has work and shows no sign of life or progress for `hung_seconds` (beyond the
    judge's own timeout) is replaced.
    """

    address: str = "none"
    evaluators: Count | None = None
    fetchers: Count | None = None
    cpus: NotNegative = 1.0
    judge_resources: dict[str, NotNegative] = {}
    flush_seconds: Seconds = 30.0
    hung_seconds: Seconds = 60.0


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a judge does and takes, for `plan`: tokens per second, and cost per million tokens."""

    prompt_tokens_per_second: Positive | None = None
    completion_tokens_per_second: Positive | None = None
    cost_per_million_prompt_tokens: NotNegative = 0.0
    cost_per_million_completion_tokens: NotNegative = 0.0


class StopConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a run may stop early: once `pairs` of systems (none named: all) are resolved by `metric`.

    `error_rate` is for all pairs together. A string in the file is short for this mapping: METRIC or METRIC:A,B.
    """

    metric: str
    pairs: list[tuple[str, str]] = []
    error_rate: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.05

    @classmethod
    def from_spec(cls, spec: str) -> "StopConfig":
        """`METRIC`, for all pairs of systems, or `METRIC:A,B`. Raises ConfigError."""
        metric, colon, pair = spec.partition(":")
        names = tuple(pair.split(",")) if colon else ()
        if not metric or not all(names) or len(names) not in (0, 2):
            raise ConfigError(
                f"until_resolved: {spec!r} is no comparison; write METRIC or METRIC:A,B, or a mapping of metric:, "
                "pairs: and error_rate: for more pairs"
            )
        return cls(metric=metric, pairs=[(names[0], names[1])] if names else [])


class RunConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run, as the file says it (contract.md, Configuration). Relative paths are relative to the file's folder, those

    of a protocol's option `file` too.
    """

    tasks: str
    reports: list[str] = []
    format: str = "adjudge"
    protocols: list[str | dict[str, Any]] = msgspec.field(default_factory=lambda: ["race", "fact"])
    judge: JudgeConfig | str = "lexical"
    fetch: FetchConfig = FetchConfig()
    store: str = ".adjudge/store"
    out: str = "runs/first"
    prompts: str | None = None
    repeats: Count = 1
    seed: Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)] = 0
    cluster: ClusterConfig | str = "none"
    prices: dict[str, Price] = {}
    reward: RewardConfig | None = None
    retry_unscored: bool = False
    serial: bool = False
    until_resolved: StopConfig | str | None = None

    @classmethod
    def load(cls, path: str | os.PathLike[str], **overrides: object) -> "RunConfig":
        """The configuration in the YAML file `path`, under the `overrides` that are not None. Raises ConfigError.

        Protocols that are chosen by name keep the options that the file gives them.
        """
        file = Path(path)
        try:
            raw = yaml.load(file.read_text(encoding="utf-8"), Loader=_Yaml)  # a SafeLoader
        except OSError as error:
            raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: not YAML: {' '.join(str(error).split())}") from error
        if not isinstance(raw, dict):
            raise ConfigError(f"{file}: must be a mapping of settings (tasks:, reports:, ...)")
        raw = _rooted(raw, file.parent)
        if (chosen := overrides.get("protocols")) is not None:
            overrides["protocols"] = _with_options(chosen, raw.get("protocols"))
        for name, value in overrides.items():
            if value is not None:
                found = raw.get(name)
                both = isinstance(value, dict) and isinstance(found, dict)
                raw[name] = found | value if both else value  # type: ignore[operator]
        return cls.of(raw, str(file))

    @classmethod
    def of(cls, raw: Mapping[str, Any], where: str = "configuration") -> "RunConfig":
        """The configuration in a mapping, checked whole. Raises ConfigError."""
        try:
            config = msgspec.convert(dict(raw), type=cls)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{where}: {_key_named(str(error))}") from error
        if isinstance(config.judge, str):
            config = msgspec.structs.replace(config, judge=JudgeConfig.from_spec(config.judge))
        config.scoring_protocols()
        config.stop_config()
        if config.reward is not None:
            config.reward_formula()
            if config.reward.audit is not None:
                config.audit_judge()
        return config

    def rooted(self, folder: str) -> "RunConfig":
        """This configuration with its relative paths made relative to `folder`."""
        return msgspec.convert(_rooted(msgspec.to_builtins(self), Path(folder)), type=RunConfig)

    def judge_config(self) -> JudgeConfig:
        """The judge's configuration, a SPEC written out."""
        return JudgeConfig.from_spec(self.judge) if isinstance(self.judge, str) else self.judge

    def stop_config(self) -> StopConfig | None:
        """When the run may stop early, a string written out; None: never. Raises ConfigError."""
        stop = self.until_resolved
        return StopConfig.from_spec(stop) if isinstance(stop, str) else stop

    def cluster_config(self) -> ClusterConfig:
        """Where evaluators run, a string written out."""
        return ClusterConfig(address=self.cluster) if isinstance(self.cluster, str) else self.cluster

    def scoring_protocols(self) -> tuple[ScoringProtocol, ...]:
        """The protocols with their options. Raises ConfigError for unknown names and options."""
        return self._chosen(self.protocols)

    def reward_config(self) -> RewardConfig:
        """The section `reward:`; without one, the run's protocols by their headline metrics."""
        return self.reward or RewardConfig()

    def criteria_digests(self) -> tuple[str, ...]:
        """Digests of the files of criteria that the protocols name, in their order. Raises ConfigError."""
        files = [entry["file"] for entry in self.protocols if isinstance(entry, dict) and "file" in entry]
        try:
            return tuple(
                hashlib.blake2b(Path(file).read_bytes(), digest_size=8).hexdigest() for file in files
            )
        except OSError as error:
            raise ConfigError(f"protocols: {error.filename}: cannot be read: {error.strerror}") from error

    def reward_protocols(self) -> tuple[ScoringProtocol, ...]:
        """The protocols that judge a rollout. Raises ConfigError."""
        return self._chosen(self.reward_config().protocols or self.protocols)

    def _chosen(self, entries: list[str | dict[str, Any]]) -> tuple[ScoringProtocol, ...]:
        chosen = _chosen(entries)
        return tuple(map(expected, chosen)) if self.judge_config().expects else chosen

    def audit_judge(self) -> JudgeConfig:
        """The second judge of rewards. Raises ConfigError if there is none."""
        audit = self.reward_config().audit
        if audit is None:
            raise ConfigError("reward: audit: names no second judge")
        return JudgeConfig.from_spec(audit.judge)

    def reward_formula(self) -> Formula:
        """What makes their scorecards a reward. Raises ConfigError for metrics that cannot be one."""
        try:
            return Formula(self.reward_config(), self.reward_protocols())
        except FormulaError as error:
            raise ConfigError(f"reward: {error}") from error


class _Yaml(yaml.SafeLoader):
    """YAML 1.2's idea of true and false: `off`, `on`, `yes` and `no` are words."""


_Yaml.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Yaml.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


_PATHS = ("tasks", "store", "out", "prompts")


def _rooted(raw: dict[str, Any], folder: Path) -> dict[str, Any]:
    """`raw` with its relative paths made relative to `folder`."""

    def rooted(value: object) -> object:
        return str(folder / value) if isinstance(value, str) and "://" not in value else value

    def with_files(found: Any) -> Any:
        match found:
            case {"file": file}:
                return {**found, "file": rooted(file)}
            case [*entries]:
                return [with_files(entry) for entry in entries]
        return found

    made = {"store": ".adjudge/store", "out": "runs/first", **raw}
    made |= {name: rooted(made[name]) for name in _PATHS if name in made}
    if isinstance(made.get("reports"), list):
        made["reports"] = [rooted(pattern) for pattern in made["reports"]]
    if "protocols" in made:
        made["protocols"] = with_files(made["protocols"])
    if "judge" in made:
        made["judge"] = _rooted_judge(made["judge"], folder)
    fetch = made.get("fetch")
    if isinstance(fetch, dict) and "snapshot" in fetch:
        made["fetch"] = {**fetch, "snapshot": rooted(fetch["snapshot"])}
    if isinstance(reward := made.get("reward"), dict):
        files = {name: with_files(reward[name]) for name in ("protocols", "canary") if name in reward}
        made["reward"] = reward | files
    return made


def _with_options(chosen: Any, entries: Any) -> Any:
    """`chosen` protocols, those that are only named as one of `entries` has them."""
    if not isinstance(chosen, list) or not isinstance(entries, list):
        return chosen
    known = {str(entry.get("name")): entry for entry in entries if isinstance(entry, dict)}
    return [known.get(one, one) if isinstance(one, str) else one for one in chosen]


def _chosen(entries: Sequence[str | dict[str, Any]]) -> tuple[ScoringProtocol, ...]:
    chosen = [_protocol(entry) for entry in entries]
    names = [protocol.name for protocol in chosen]
    if not names:
        raise ConfigError("protocols: name at least one")
    if len(set(names)) < len(names):
        raise ConfigError("protocols: a protocol may be named once; use another run for other options")
    return tuple(chosen)


def _rooted_judge(judge: Any, folder: Path) -> Any:
    """`judge` with its model, if that is a folder seen from `folder`, made relative to it."""

    def rooted(model: object) -> object:
        is_folder = isinstance(model, str) and model and (folder / model).is_dir()
        return f"{folder / str(model)}" if is_folder else model

    match judge:
        case str() if judge.startswith("vllm:"):
            return f"vllm:{rooted(judge.removeprefix('vllm:'))}"
        case {"members": [*members]}:
            return {**judge, "members": [_rooted_judge(member, folder) for member in members]}
        case {"backend": "vllm", "model": model}:
            return {**judge, "model": rooted(model)}
    return judge


def _protocol(entry: str | dict[str, Any]) -> ScoringProtocol:
    options = {"name": entry} if isinstance(entry, str) else dict(entry)
    name = options.pop("name", None)
    loaders = _loaders()
    if not isinstance(name, str) or name not in loaders:
        raise ConfigError(f"protocols: {name!r} is not installed; there are {', '.join(sorted(loaders))}")
    try:
        protocol: ScoringProtocol = msgspec.convert(options, type=loaders[name]())
    except msgspec.ValidationError as error:
        raise ConfigError(f"protocols: {name}: {_key_named(str(error))}") from error
    return protocol


@cache
def _loaders() -> dict[str, Any]:
    return dict(installed_protocols())


def _key_named(message: str) -> str:
    """msgspec's message with the key first: `fetch.mode: Invalid enum value 'x'`."""
    text, _, at = message.partition(" - at `$")
    key = at.rstrip("`").lstrip(".")
    return f"{key}: {text}" if key else text
