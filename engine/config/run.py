"""One configuration: a YAML file, overridden by the command line, checked before anything runs.

The section `cluster:` of a configuration: where evaluators run.

What a run evaluates, or a leaderboard ranks, of all tasks and systems.

What ends a run early, and what its cost is reckoned by: `until_resolved:` and `prices:` of a configuration.

The paths in a configuration, which start at the folder of its file.
"""

import datetime
import hashlib
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from adjudge.engine.config.board import BoardConfig, SystemConfig, with_logo
from adjudge.engine.config.fetch import FetchConfig
from adjudge.engine.config.judge import (
    Bench,
    JudgeConfig,
    check_names,
    check_server,
    judge_in_full,
    rooted_judge,
)
from adjudge.engine.config.protocols import named_protocols, protocol_loaders, with_options
from adjudge.engine.config.redaction import credentials, named_credentials
from adjudge.engine.config.reward import Formula, RewardConfig
from adjudge.engine.config.settings import ConfigError, Count, NotNegative, Positive, Seconds, mistake
from adjudge.judges.judgment import Profile
from adjudge.judges.plural import listed, plural
from adjudge.judges.published import CheckoutError
from adjudge.scoring.answers.parts import MinAnswered
from adjudge.scoring.contract.protocol import (
    MAX_REPORT_CHARS,
    Comparing,
    PublishedCalls,
    ScoringProtocol,
    prefixed,
)

__all__ = [
    "EVERYTHING",
    "ClusterConfig",
    "Price",
    "Resolved",
    "RunConfig",
    "Select",
    "StopConfig",
]


class ClusterConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where evaluators run. A string in the file is short for `address`."""

    address: str = "none"
    """`none`: this process. `local`: a small Ray on this machine. Else the address of a Ray head, or `auto`."""
    evaluators: Count | None = None
    """Number of evaluators; by default, one per CPU of the cluster."""
    fetchers: Count | None = None
    """Number of readers of live pages; by default, as many as evaluators need."""
    cpus: NotNegative = 1.0
    """Ray's logical CPUs that each evaluator and fetcher takes."""
    judge_resources: dict[str, NotNegative] = {}
    """What a judge's replica takes, by names in Ray (`GPU: 1`); without them, `cpus`."""
    flush_seconds: Seconds = 30.0
    """Answers are written at least this often, in seconds."""
    hung_seconds: Seconds = 60.0
    """A worker with work that shows neither life nor progress for so many seconds, on top of the judge's timeout, is
    replaced."""


_OF_A_DEADLINE = 0.25  # how long a reward may wait for a site that wants fewer requests


class Select(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A choice of tasks and systems; an empty list leaves the choice open.

    A task must satisfy all that is given.
    """

    limit: Count | None = None
    """Keeps the first of the tasks that satisfy the rest, in the order of their file, the same for every system."""
    tasks: list[str | int] = []
    """Ids of tasks."""
    systems: list[str] = []
    """Names of systems."""
    languages: list[str] = []
    """Languages of tasks."""
    domains: list[str] = []
    """Domains of tasks."""

    @property
    def words(self) -> str:
        """The choice in words, "" for everything."""
        lists = {
            "tasks": [str(one) for one in self.tasks],
            "systems": self.systems,
            "languages": self.languages,
            "domains": self.domains,
        }
        said = [f"{kind} {listed(names)}" for kind, names in lists.items() if names]
        if self.limit is not None:
            said.append(f"the first {plural(self.limit, 'task')}")
        return "; ".join(said)


EVERYTHING = Select()


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A judge's speed and price, for `plan`: tokens per second, and cost per million tokens."""

    prompt_tokens_per_second: Positive | None = None
    """Speed of the judge at reading prompts."""
    completion_tokens_per_second: Positive | None = None
    """Speed of the judge at writing answers."""
    cost_per_million_prompt_tokens: NotNegative = 0.0
    """In any currency; all prices in the same one."""
    cost_per_million_completion_tokens: NotNegative = 0.0
    """In the same currency."""


class StopConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a run may stop early: once `pairs` of systems (none named: all) are resolved by `metric`.

    A string in the file is short for this mapping: METRIC or METRIC:A,B.
    """

    metric: str
    """What systems are compared by, such as `race.overall`."""
    pairs: list[tuple[str, str]] = []
    """The pairs of systems that must be resolved; none named: all."""
    error_rate: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.05
    """The chance of any wrong order among all pairs together."""

    @classmethod
    def from_spec(cls, spec: str) -> "StopConfig":
        """`METRIC`, for all pairs of systems, or `METRIC:A,B`. Raises ConfigError."""
        metric, colon, pair = spec.partition(":")
        names = tuple(pair.split(",")) if colon else ()
        if not metric or not all(names) or len(names) not in (0, 2):
            raise ConfigError(
                f"until_resolved: invalid comparison {spec!r}; write METRIC or METRIC:A,B, or for more pairs a mapping "
                "of metric:, pairs: and error_rate:"
            )
        return cls(metric=metric, pairs=[(names[0], names[1])] if names else [])


_PATHS = ("tasks", "store", "out", "prompts")
_FILES = ("file", "checkout", "scraped")  # options of protocols, and of rewards' canaries


def in_full(raw: Mapping[str, Any]) -> dict[str, Any]:
    """`raw` with short forms written out: `reports: FOLDER`, `protocols: race`, `fetch: off`, `judge: {url: U}`."""
    made = dict(raw)
    if "judge" in made:
        made["judge"] = judge_in_full(made["judge"])
    if isinstance(judges := made.get("judges"), dict):
        made["judges"] = {name: judge_in_full(one) for name, one in judges.items()}
    for name in ("reports", "protocols"):
        if isinstance(made.get(name), str | dict):
            made[name] = [made[name]]
    fetch = made.get("fetch")
    if isinstance(fetch, str | bool):  # false is what other readers of YAML make of `off`
        made["fetch"] = {"mode": fetch if isinstance(fetch, str) else "true" if fetch else "off"}
    if isinstance(fetch, dict) and fetch.get("snapshot") is not None:
        made["fetch"] = {"mode": "snapshot", **fetch}
    return made


def rooted(raw: dict[str, Any], folder: Path) -> dict[str, Any]:
    """`raw` with its relative paths put below `folder`, and written out."""

    def from_folder(value: object) -> object:
        elsewhere = not isinstance(value, str) or "://" in value or value.startswith("hf:")
        return value if elsewhere else str(folder / os.path.expanduser(str(value)))  # noqa: PTH111 - it never raises

    def with_files(found: Any) -> Any:
        match found:
            case {**options}:
                return options | {name: from_folder(options[name]) for name in _FILES if name in options}
            case [*entries]:
                return [with_files(entry) for entry in entries]
        return found

    made = {"store": ".adjudge/store", "out": "runs/first", **in_full(raw)}
    made |= {name: from_folder(made[name]) for name in _PATHS if name in made}
    if isinstance(made.get("reports"), list):
        made["reports"] = [
            {**one, "path": from_folder(one["path"])}
            if isinstance(one, dict) and "path" in one
            else from_folder(one)
            for one in made["reports"]
        ]
    if "protocols" in made:
        made["protocols"] = with_files(made["protocols"])
    if "judge" in made:
        made["judge"] = rooted_judge(made["judge"], folder)
    if isinstance(judges := made.get("judges"), dict):
        made["judges"] = {name: rooted_judge(one, folder) for name, one in judges.items()}
    fetch = made.get("fetch")
    if isinstance(fetch, dict) and fetch.get("snapshot") is not None:
        made["fetch"] = {**fetch, "snapshot": from_folder(fetch["snapshot"])}
    if isinstance(reward := made.get("reward"), dict):
        files = {name: with_files(reward[name]) for name in ("protocols", "canary", "log") if name in reward}
        made["reward"] = reward | files
    return made


_Column = Annotated[str, msgspec.Meta(max_length=200)]


class ReportFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The columns that hold the fields of reports, where a file names them otherwise."""

    task_id: _Column = ""
    """The id of the task."""
    text: _Column = ""
    """The report."""
    system: _Column = ""
    """The system that wrote it."""
    sample: _Column = ""
    """The number of the system's run."""
    prompt: _Column = ""
    """The question, by which a report without an id finds its task."""
    citations: _Column = ""
    """The citations, where they are apart from the text."""
    trace: _Column = ""
    """The agent's steps."""

    @property
    def named(self) -> dict[str, str]:
        """The columns that are given, by field."""
        return {name: column for name, column in msgspec.structs.asdict(self).items() if column}


class ReportFiles(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The files that match `path`; several runs of one `system` with the same tasks are its samples."""

    path: str
    """A file, a folder, a ZIP archive, or a pattern of these."""
    system: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    """The system that wrote these reports; without it, the one that they, their file or folder say."""
    fields: ReportFields = ReportFields()
    """The columns that hold the fields of reports."""


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """What a configuration comes to: who judges, what is scored, where evaluators run, and when they may stop."""

    bench: Bench
    """The judges of the protocols."""
    protocols: tuple[ScoringProtocol, ...]
    """The protocols with their options."""
    cluster: ClusterConfig
    """Where evaluators run."""
    stop: StopConfig | None
    """When the run may stop early, None for never."""
    reads_the_web: bool
    """Whether a protocol reads pages that are fetched during the run."""

    @property
    def comparing(self) -> Comparing | None:
        """The protocol that compares reports with one another, if there is one."""
        return next((one for one in self.protocols if isinstance(one, Comparing)), None)

    @property
    def is_on_cluster(self) -> bool:
        """Whether evaluators run on Ray. Raises ConfigError for a judge with replicas but without a cluster."""
        if self.cluster.address != "none":
            return True
        for seat in self.bench.seats.values():
            if seat.config.replicas:
                raise ConfigError(
                    f"{seat.name}.replicas: needs a cluster; add --cluster local, or leave replicas out"
                )
        return False


class RunConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A run as its file describes it. Relative paths, such as a protocol's `file`, start at the file's folder."""

    tasks: str = ""
    """The file of tasks, the folder of a published benchmark (see `format`), or `hf:OWNER/NAME[@REVISION]`. May be
    left out for rewards alone, whose rollouts then carry what they are judged by."""
    reports: list[str | ReportFiles] = []
    """Files of reports: patterns, folders, `hf:OWNER/NAME[@REVISION]`, or mappings of `path`, `system` and `fields`.
    A single one needs no list."""
    format: str = "adjudge"
    """The layout of tasks and reports: `adjudge`, or the name of a published benchmark."""
    articles: Literal["raw", "cleaned"] | None = None
    """Which articles of DeepResearch Bench are judged: as the system wrote them, or cleaned of citations, which its own
    calls (`call: published`) then do not clean again."""
    date: datetime.date | None = None
    """The day that fills the placeholders of tasks about the present (LiveResearchBench)."""
    select: Select = Select()
    """Which tasks and systems are evaluated; what is left out is not missing."""
    protocols: list[str | dict[str, Any]] = msgspec.field(default_factory=lambda: ["race", "fact"])
    """The protocols, by name, or as mappings of `name` and options."""
    judge: JudgeConfig | str = "lexical"
    """The judge, as a mapping or a SPEC: `lexical`, `openai:URL#MODEL`, `vllm:MODEL_OR_FOLDER`."""
    judges: dict[str, JudgeConfig | str] = {}
    """Another judge than `judge` for a protocol or a medium, by its name."""
    min_answered: MinAnswered = 0.8
    """The share of its parts that a metric of our own needs to have a value; a protocol's entry may have another."""
    fetch: FetchConfig = FetchConfig()
    """Where pages come from. A word in the file is short for `mode`."""
    store: str = ".adjudge/store"
    """Where judgments and pages are kept: a folder, or the URI of an object store."""
    out: str = "runs/first"
    """The folder of the run: its record, scores and leaderboard."""
    prompts: str | None = None
    """A folder of prompt files that override the shipped ones by name."""
    samples: Count = 1
    """How many reports of a system are due for each task; more are welcome, and change what is due of nobody."""
    repeats: Count = 1
    """How often the judge is asked each question."""
    seed: Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)] = 0
    """The seed of statistics, and of nothing else."""
    cluster: ClusterConfig | str = "none"
    """Where evaluators run: `none`, `local`, the address of a Ray head, or a mapping."""
    prices: dict[str, Price] = {}
    """Speed and price of judges by name, for `plan`, `max_cost` and the cost on leaderboards."""
    reward: RewardConfig | None = None
    """What a reward is made of, for `RewardModel` and `adjudge serve`."""
    retry_unscored: bool = False
    """Whether failures that would happen again (`context_overflow`, say) are asked again too."""
    tracing: Literal["none", "calls", "content"] = "none"
    """OpenTelemetry spans: `none`, one per judge `calls`, or these with their prompts and replies, the `content`."""
    serial: bool = False
    """Whether reports are scored one after the other, for debugging."""
    until_resolved: StopConfig | str | None = None
    """When the run may stop early: METRIC, METRIC:A,B, or a mapping."""
    report_limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_REPORT_CHARS)] | None = None
    """At most 500,000, as by default. Longer reports are report_too_large; rewards take it from the judge's window."""
    judge_check: Literal["off", "warn", "require"] = "warn"
    """Whether judges are asked a few questions with known answers first, as by `adjudge judge`: before a run that will
    ask 1,000 questions or more, to say what fails; or before any run, which ends where one fails (`require`)."""
    max_questions: Count | None = None
    """The run stops when it has asked so many; the same command continues it."""
    max_cost: Positive | None = None
    """The run stops when it has spent so much by `prices`; the same command continues it."""
    board: BoardConfig = BoardConfig()
    """What its leaderboard says about itself."""
    systems: dict[str, SystemConfig] = {}
    """What its leaderboard says of systems, by name: organisation, weights, licence, date, price, notes, link."""

    @classmethod
    def load(cls, path: str | os.PathLike[str], **overrides: object) -> "RunConfig":
        """The configuration in the YAML file `path`, changed by the `overrides` that are not None. Raises ConfigError.

        Protocols that are chosen by name keep the options that the file gives them.
        """
        # Not above: most commands read run.json alone.
        from adjudge.engine.config.yaml_file import load_yaml

        file = Path(path)
        raw = rooted(with_logo(load_yaml(file), file.parent), file.parent)
        if (chosen := overrides.get("protocols")) is not None:
            overrides["protocols"] = with_options(chosen, raw.get("protocols"))
        for name, value in overrides.items():
            if value is not None:
                found = raw.get(name)
                both = isinstance(value, dict) and isinstance(found, dict)
                raw[name] = found | value if both else value  # type: ignore[operator]
        return cls.of(raw, str(file))

    @classmethod
    def of(cls, raw: Mapping[str, Any], where: str = "configuration") -> "RunConfig":
        """The configuration in a mapping, checked whole. Raises ConfigError."""
        for key, text in _texts(raw, ""):
            if "\0" in text:
                raise ConfigError(f"{where}: {key}: has a NUL character; remove it")
            if (found := credentials(text)) is not None:
                raise ConfigError(
                    f"{where}: {key}: the address contains {found}; remove it and set it in the environment "
                    "(OPENAI_API_KEY for a judge, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for s3://)"
                )
        # Not where a judge is read: earlier runs may have such keys, and are read as they are.
        for place in _keys_in_options(raw, ""):
            raise ConfigError(
                f"{where}: {place}: keys come from the environment alone; set api_key_env to a variable's name"
            )
        try:
            config = msgspec.convert(in_full(raw), type=cls)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{where}: {mistake(error, cls, in_full(raw))}") from error
        check_names(list(config.judges), list(protocol_loaders()))
        others = {name: JudgeConfig.of(one, f"judges.{name}") for name, one in config.judges.items()}
        judge = JudgeConfig.of(config.judge)
        for key, one in {"judge": judge, **{f"judges.{name}": one for name, one in others.items()}}.items():
            check_server(one, f"{where}: {key}")
        config = msgspec.structs.replace(config, judge=judge, judges=others)
        _ = config.resolved
        if config.reward is not None:
            config.check_reward()
        return config

    def rooted(self, folder: str) -> "RunConfig":
        """This configuration with its relative paths made relative to `folder`."""
        return msgspec.convert(rooted(msgspec.to_builtins(self), Path(folder)), type=RunConfig)

    @cached_property
    def resolved(self) -> Resolved:
        """The judges, protocols and cluster of this configuration. Raises ConfigError for unknown names and options."""
        others = {name: JudgeConfig.of(one) for name, one in self.judges.items()}
        named, stop = self._named(self.protocols), self.until_resolved
        return Resolved(
            bench=Bench(JudgeConfig.of(self.judge), others, named),
            protocols=self._as_judged(named),
            cluster=ClusterConfig(address=self.cluster) if isinstance(self.cluster, str) else self.cluster,
            stop=StopConfig.from_spec(stop) if isinstance(stop, str) else stop,
            reads_the_web=self.fetch.mode == "live" and any(getattr(one, "pages", False) for one in named),
        )

    def judge_of(self, answer: str) -> JudgeConfig:
        """The judge of a protocol or a medium."""
        return JudgeConfig.of(self.judges.get(answer, self.judge))

    def _named(
        self, entries: list[str | dict[str, Any]], may_bring_pages: bool = False
    ) -> tuple[ScoringProtocol, ...]:
        """The protocols of `entries`, with the options that they share."""
        shared = {
            "min_answered": self.min_answered,
            "pages": may_bring_pages or self.fetch.mode != "off",
            **({"checkout": self.tasks} if self.tasks else {}),
        }
        return named_protocols(entries, shared, {"cleaning": "none"} if self.articles == "cleaned" else {})

    def _as_judged(self, protocols: tuple[ScoringProtocol, ...]) -> tuple[ScoringProtocol, ...]:
        """`protocols`, those whose judge answers in another way with other names of metrics."""
        # Free text has no labels whose probabilities could be seen, and a winner no mean: both are sampled.
        plain = (PublishedCalls, Comparing)
        return tuple(
            prefixed(one, prefix)
            if (prefix := self.judge_of(one.name).prefix) and not isinstance(one, plain)
            else one
            for one in protocols
        )

    def profiled(self, profile: Profile) -> "RunConfig":
        """This configuration with the `profile` for each of its judges that has it."""
        judges = {name: JudgeConfig.of(one).profiled(profile) for name, one in self.judges.items()}
        return msgspec.structs.replace(
            self, judge=JudgeConfig.of(self.judge).profiled(profile), judges=judges
        )

    def with_budget(self, comparisons: int) -> "RunConfig":
        """This configuration with at most so many comparisons of reports. Raises ConfigError if it makes none."""
        if (comparing := self.resolved.comparing) is None:
            raise ConfigError("--budget: no protocol compares reports; add pairwise to protocols:")
        entries = [
            {**({"name": one} if isinstance(one, str) else one), "budget": comparisons}
            if comparing.name in (one, one.get("name") if isinstance(one, dict) else None)
            else one
            for one in self.protocols
        ]
        return RunConfig.of({**msgspec.to_builtins(self), "protocols": entries})

    def reward_config(self) -> RewardConfig:
        """The section `reward:`; without one, the run's protocols by their headline metrics."""
        return self.reward or RewardConfig()

    def criteria_digests(self) -> tuple[str, ...]:
        """Digests of the criteria files that the protocols name, in their order. Raises ConfigError."""
        files = [entry["file"] for entry in self.protocols if isinstance(entry, dict) and "file" in entry]
        try:
            return tuple(
                hashlib.blake2b(Path(file).read_bytes(), digest_size=8).hexdigest() for file in files
            )
        except OSError as error:
            raise ConfigError(
                f"protocols: {error.filename}: cannot be read: {error.strerror}; give a file"
            ) from error

    def published_protocols(self) -> tuple[str, ...]:
        """The names of the protocols that ask in their benchmark's own words."""
        published = (
            one for one in self.protocols if isinstance(one, dict) and one.get("call") == "published"
        )
        return tuple(str(one.get("name")) for one in published)

    def published_prompts(self) -> dict[str, str]:
        """Digests of the prompts that published calls take from their checkouts, by a name. Raises ConfigError."""
        found: dict[str, str] = {}
        rewarded = [] if self.reward is None else self.reward.protocols
        for protocol in (*self.resolved.protocols, *(self._named(rewarded) if rewarded else ())):
            if isinstance(protocol, PublishedCalls):
                try:
                    found |= protocol.prompts()
                except CheckoutError as error:
                    raise ConfigError(f"protocols: {protocol.name}: {error}") from error
        return found

    def audit_judge(self) -> JudgeConfig:
        """The second judge of rewards. Raises ConfigError where none is configured."""
        audit = self.reward_config().audit
        if audit is None:
            raise ConfigError("reward: audit: is missing; add audit: with a second judge")
        return JudgeConfig.from_spec(audit.judge, "reward.audit.judge")

    def for_rewards(self) -> "RunConfig":
        """This configuration with the protocols of its rewards, and no site waited for longer than they can wait."""
        reward = self.reward_config()
        fetch = self.fetch.within(reward.deadline_s * _OF_A_DEADLINE)
        return msgspec.structs.replace(self, protocols=reward.protocols or self.protocols, fetch=fetch)

    @cached_property
    def reward_formula(self) -> Formula:
        """What makes a rollout's scorecards a reward, and the protocols that give them. Raises ConfigError."""
        reward = self.reward_config()
        protocols = self._as_judged(self._named(reward.protocols or self.protocols, may_bring_pages=True))
        compares = [one.name for one in protocols if isinstance(one, Comparing)]
        if compares:
            raise ConfigError(
                f"reward: {compares[0]} compares systems, which rollouts are not; leave it out of protocols:"
            )
        return Formula(reward, protocols, self.fetch.closed)

    def check_reward(self) -> None:
        """Raise ConfigError unless rewards can be computed, and audited where an audit is configured."""
        _ = self.reward_formula
        if self.reward_config().audit is not None:
            self.audit_judge()


def _keys_in_options(value: object, key: str) -> Iterator[str]:
    """The places of keys in what judges' servers and engines are given as it is."""
    match value:
        case Mapping():
            for name, each in value.items():
                place = f"{key}.{name}" if key else str(name)
                if name in ("request", "engine"):
                    yield from named_credentials(each, place)
                elif name != "protocols":
                    yield from _keys_in_options(each, place)
        case list() | tuple():
            for each in value:
                yield from _keys_in_options(each, key)


def _texts(value: object, key: str) -> Iterator[tuple[str, str]]:
    """Every text of a configuration, with its key; the options of protocols contain no addresses."""
    match value:
        case str():
            yield key, value
        case Mapping():
            for name, each in value.items():
                if name != "protocols":
                    yield from _texts(each, f"{key}.{name}" if key else str(name))
        case list() | tuple():
            for each in value:
                yield from _texts(each, key)
