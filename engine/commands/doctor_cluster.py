"""The doctor's checks of a cluster: each check runs on every node, in the same kind of process as the work itself."""

import os
import platform
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec
import ray
from pyarrow import fs
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from adjudge.engine.cluster.session import connected
from adjudge.engine.cluster.workers import replica_options
from adjudge.engine.commands.finding import Finding
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import StoreError
from adjudge.engine.store import Place

SKEW_SECONDS = 1.0
_COMPARED = ("adjudge", "aiohttp", "msgspec", "numba", "numpy", "pyarrow", "ray", "trafilatura", "vllm")
_WAIT_SECONDS = 120.0
_LOADING_SECONDS = 960.0
_CLOCKS = 3


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A node's report. `skew` is its clock minus the driver's, in seconds, known to within `doubt`."""

    name: str
    gpus: float
    versions: dict[str, str]
    store: str
    judge: str
    skew: float
    doubt: float


Judged = Callable[[RunConfig, Sequence[str]], list[Finding]]
Asked = Callable[[], list[Finding]]


def check_up(config: RunConfig, judged: Judged) -> list[Finding]:
    """Check every node of a cluster, which must be there; `judged` asks judges by name. Raises UsageError.

    A judge with replicas in the cluster is asked from a worker with a replica's resources, any other from every node.
    """
    seats = config.resolved.bench.seats.items()
    from_nodes = [name for name, seat in seats if seat.config.backend != "vllm" and not seat.config.replicas]
    with connected(config.resolved.cluster.address, 1):
        marker = f".doctor-{secrets.token_hex(8)}"
        place = Place.of(config.store)
        problem = _mark(place, marker)
        try:
            alive: list[dict[str, Any]] = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
            nodes = [_asked(node, config, marker, partial(judged, config, from_nodes)) for node in alive]
            replicas = [
                finding
                for name, seat in seats
                if seat.config.replicas
                for finding in _replica(config, judged, name)
            ]
        finally:
            _unmark(place, marker)
        return [*findings_of(nodes, config, problem), *replicas]


def findings_of(nodes: list[Node | str], config: RunConfig, store: str = "") -> list[Finding]:
    """The findings about `nodes`, each a Node or the name of one that did not answer; `store`: the driver's problem."""
    silent = [node for node in nodes if isinstance(node, str)]
    there = [node for node in nodes if isinstance(node, Node)]
    return [
        Finding(
            what="cluster nodes",
            good=not silent and bool(there),
            found=f"{len(there)} of {len(nodes)} answer" + (f"; not {', '.join(silent)}" if silent else ""),
            fix="look at `ray status`, and restart what is stuck on those nodes",
        ),
        _gpus(there, config),
        _versions(there),
        _stores(there, store),
        *(
            [_judges(there)]
            if not all(seat.config.replicas for seat in config.resolved.bench.seats.values())
            else []
        ),
        _clocks(there),
    ]


def _gpus(nodes: list[Node], config: RunConfig) -> Finding:
    replicas = sum(seat.config.replicas or 0 for seat in config.resolved.bench.seats.values())
    wanted = config.resolved.cluster.judge_resources.get("GPU", 0.0) * replicas
    total = sum(node.gpus for node in nodes)
    return Finding(
        what="cluster GPUs",
        good=total >= wanted,
        found=f"{total:g}, {wanted:g} needed by the judge's replicas",
        fix="add nodes, or lower judge: replicas",
    )


def _versions(nodes: list[Node]) -> Finding:
    different = []
    for name in ("Python", *_COMPARED):
        where: dict[str, list[str]] = {}
        for node in nodes:
            where.setdefault(node.versions.get(name, "none"), []).append(node.name)
        if len(where) > 1:
            told = "; ".join(f"{found} on {', '.join(names)}" for found, names in sorted(where.items()))
            different.append(f"{name}: {told}")
    return Finding(
        what="cluster versions",
        good=not different,
        found=" | ".join(different) or "equal on all nodes",
        fix="install the same lock file everywhere (deploy/install.sh)",
    )


def _stores(nodes: list[Node], own: str) -> Finding:
    troubled = [f"{node.name}: {node.store}" for node in nodes if node.store]
    return Finding(
        what="cluster store",
        good=not own and not troubled,
        found=own or "; ".join(troubled) or "every node sees what this one writes",
        fix="set store: to an object store, or to a folder that all nodes mount",
    )


def _judges(nodes: list[Node]) -> Finding:
    troubled = [f"{node.name}: {node.judge}" for node in nodes if node.judge]
    return Finding(
        what="cluster judge",
        good=not troubled,
        found="; ".join(troubled) or "answers every node",
        fix="give judge: url: an address that all nodes reach, and the nodes its key",
    )


def _replica(config: RunConfig, judged: Judged, name: str) -> list[Finding]:
    """What the judge of that name answers on a worker with the resources of its replicas."""
    asked: Any = ray.remote(judged).options(**replica_options(config.resolved.cluster), max_retries=0)
    try:
        found: list[Finding] = ray.get(asked.remote(config, [name]), timeout=_LOADING_SECONDS)
    except ray.exceptions.RayError as error:
        said = " ".join(str(error).split())[:300]
        fix = "check cluster: judge_resources against `ray status`"
        return [Finding(what="cluster judge", good=False, found=said, fix=fix)]
    return [msgspec.structs.replace(one, what="cluster judge") for one in found]


def _clocks(nodes: list[Node]) -> Finding:
    late = [node for node in nodes if abs(node.skew) - node.doubt > SKEW_SECONDS]
    worst = max((abs(node.skew) for node in nodes), default=0.0)
    said = ", ".join(f"{node.name} {node.skew:+.1f} s" for node in late)
    return Finding(
        what="cluster clocks",
        good=not late,
        found=said or f"within {worst:.2f} s of this one's",
        fix="run an NTP client there: of two answers to one question the earliest counts",
    )


def _asked(node: dict[str, Any], config: RunConfig, marker: str, judged: Asked) -> Node | str:
    name = str(node.get("NodeManagerHostname") or node["NodeManagerAddress"])
    there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    options: dict[str, Any] = {"num_cpus": 0, "max_retries": 0, "scheduling_strategy": there}
    look: Any = ray.remote(_look).options(**options)
    clock: Any = ray.remote(_now).options(**options)
    try:
        versions, store, judge = ray.get(look.remote(config, marker, judged), timeout=_WAIT_SECONDS)
        tried = []
        for _ in range(_CLOCKS):
            before = time.time()
            said = ray.get(clock.remote(), timeout=_WAIT_SECONDS)
            after = time.time()
            tried.append((after - before, said - (before + after) / 2))
    except ray.exceptions.RayError:
        return name
    took, skew = min(tried)
    gpus = float(node["Resources"].get("GPU", 0.0))
    return Node(name=name, gpus=gpus, versions=versions, store=store, judge=judge, skew=skew, doubt=took / 2)


def _look(config: RunConfig, marker: str, judged: Asked) -> tuple[dict[str, str], str, str]:
    """On a node: its versions, and what is wrong with the store and the judge there."""
    found = {"Python": platform.python_version()}
    for name in _COMPARED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    troubled = (one.found for one in judged() if not one.good)
    return found, _trouble(config.store, marker), "; ".join(troubled)


def _now() -> float:
    return time.time()


def _trouble(store: str, marker: str) -> str:
    """Why this process cannot read what the driver wrote, or write beside it; empty if it can."""
    try:
        place = Place.of(store)
        if place.filesystem.get_file_info(f"{place.path}/{marker}").type != fs.FileType.File:
            return f"{store} is another folder there"
    except OSError as error:
        return f"{store}: {error}"
    own = f"{marker}-{socket.gethostname()}-{os.getpid()}"
    trouble = _mark(place, own)
    _unmark(place, own)
    return trouble


def _mark(place: Place, name: str) -> str:
    try:
        place.filesystem.create_dir(place.path, recursive=True)
        with place.filesystem.open_output_stream(f"{place.path}/{name}") as sink:
            sink.write(b"adjudge doctor\n")
    except OSError as error:
        return f"{place.uri} cannot be written: {error}"
    return ""


def _unmark(place: Place, name: str) -> None:
    try:
        place.filesystem.delete_file(f"{place.path}/{name}")
    except (OSError, StoreError):
        return
