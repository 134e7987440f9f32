"""The place where the exceptions of network libraries get their reason."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp

from adjudge.fetchers.failures import Failure
from adjudge.fetchers.guard import NO_SUCH_NAME, Blocked, NamesUnavailable


@contextmanager
def boundary() -> Iterator[None]:
    """Turns whatever the network does into a Failure."""
    try:
        yield
    except TimeoutError as error:
        raise Failure("page_timeout", str(error) or "not received in time") from error
    except aiohttp.ClientSSLError as error:
        raise Failure("page_server_error", f"TLS: {error}") from error
    except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError) as error:
        raise _connection_failure(error) from error
    except aiohttp.ClientError as error:
        raise Failure("page_server_error", f"invalid HTTP: {error}") from error
    except UnicodeError as error:
        raise Failure("page_gone", f"no such host name: {error}") from error


def _connection_failure(error: Exception) -> Failure:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, Blocked):
        return Failure("page_blocked", str(cause))
    if isinstance(cause, NamesUnavailable):
        return Failure("network_unavailable", str(cause), again=True)
    if isinstance(cause, socket.gaierror) and cause.errno in NO_SUCH_NAME:
        return Failure("page_gone", "no such host")
    return Failure("page_server_error", f"the connection failed: {error}", again=True)
