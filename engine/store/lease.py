"""One housekeeping of a store at a time, in whatever process: a lease that a dead owner loses.

Locally it is a lock on a file. On object storage it is an object that is written anew as long as the work goes on, and
expires without that; of those that ask at once nobody gets it, and each asks again after a random time.
"""

import fcntl
import logging
import os
import random
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from adjudge.engine.errors import StoreError
from adjudge.engine.store.place import Place

__all__ = ["EXPIRY_SECONDS", "Renew", "housekeeping"]

_log = logging.getLogger(__name__)

EXPIRY_SECONDS = 600.0
RETRY_SECONDS = 1.0
_ENDING = ".lease"

Renew = Callable[[], None]


@contextmanager
def housekeeping(store: Place) -> Iterator[Renew]:
    """Wait for the lease of `store`, and hold it for the block.

    Call what it gives at least every EXPIRY_SECONDS, and before each change: it renews the lease, and raises StoreError
    if the lease was lost.
    """
    with _locked(store) if store.is_local else _leased(store) as renew:
        yield renew


@contextmanager
def _locked(store: Place) -> Iterator[Renew]:
    path = Path(store.path) / ".housekeeping"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise StoreError(f"{store.uri}: cannot be written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _log.warning("%s: another process compacts or prunes this store; waiting for it", store.uri)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield lambda: None
    finally:
        os.close(descriptor)


@contextmanager
def _leased(store: Place) -> Iterator[Renew]:
    own = f"{secrets.token_hex(8)}{_ENDING}"
    waited = False
    while not _taken(store, own):
        if not waited:
            _log.warning("%s: another process compacts or prunes this store; waiting for it", store.uri)
        waited = True
        time.sleep(RETRY_SECONDS * random.uniform(0.5, 1.5))
    renewed = time.monotonic()

    def renew() -> None:
        nonlocal renewed
        if time.monotonic() - renewed > EXPIRY_SECONDS / 2:
            raise StoreError(
                f"{store.uri}: the lease expired while the store was rewritten; run the command again"
            )
        store.write(own, [b"lease"])
        renewed = time.monotonic()

    try:
        yield renew
    finally:
        store.delete(own)


def _taken(store: Place, own: str) -> bool:
    """Whether `own` is now the only lease that has not expired; otherwise it is gone again."""
    store.write(own, [b"lease"])
    others = {name: each for name, each in store.listed(_ENDING).items() if name != own}
    expired = {name for name, each in others.items() if time.time() - each.written > EXPIRY_SECONDS}
    for name in expired:
        store.delete(name)
    if len(others) == len(expired):
        return True
    store.delete(own)
    return False
