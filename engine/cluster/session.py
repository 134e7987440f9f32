"""The connection to Ray: an instance started here, or a running one."""

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import ray
from ray.exceptions import RayError

from adjudge.engine.config.settings import ConfigError

_OBJECT_STORE_BYTES = 100_000_000  # cases and scorecards are small and go inline; Ray needs at least 75 MB

_CONNECT_SECONDS = 5.0


@contextmanager
def connected(address: str, cpus: float) -> Iterator[None]:
    """Ray for as long as the block lasts: `local` starts one with at least `cpus` logical CPUs, on loopback only.

    An existing connection of this process is used and left open. Raises ConfigError.
    """
    if ray.is_initialized():
        yield
        return
    _check(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with _signals_kept():
        try:
            if address == "local":
                ray.init(
                    address="local",
                    num_cpus=max(int(cpus + 0.99), os.cpu_count() or 1),
                    object_store_memory=_OBJECT_STORE_BYTES,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    _node_ip_address="127.0.0.1",
                )
            else:
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError, RayError) as error:
            message = " ".join(str(error).split())[:300]
            raise ConfigError(
                f"cluster: {address}: {message}; write none, local, or a Ray head's HOST:PORT, and if it asks for a "
                "token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
            ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _check(address: str) -> None:
    """Raise ConfigError if nothing listens at HOST:PORT; Ray itself would wait for minutes and then exit."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"cluster: {address}: {error}; write none, local, or a Ray head's HOST:PORT"
        ) from error


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Restore the handler of SIGTERM, which Ray replaces when it starts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
