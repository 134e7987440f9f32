"""A failed attempt at a page, and the place where foreign exceptions get their reason.

A failure says whether another attempt can help. It never leaves the fetcher, which turns it into a page.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp

from adjudge.fetchers.guard import NO_SUCH_NAME, Blocked, NamesUnavailable
from adjudge.fetchers.page import PageReason

_GONE = (404, 410)
# One large site answers programs with 999.
_BARRED = (401, 402, 403, 451, 999)


class Failure(Exception):
    """Why an attempt failed. `again`: another attempt may succeed; `answered`: the site said so itself.

    `refused`: the site wants fewer requests; `wait` is the seconds that it asks for, if it does.
    """

    def __init__(
        self,
        reason: PageReason,
        detail: str,
        *,
        again: bool = False,
        answered: bool = False,
        refused: bool = False,
        wait: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.reason: PageReason = reason
        self.detail = detail
        self.again = again
        self.answered = answered
        self.refused = refused
        self.wait = wait

    @property
    def passes(self) -> bool:
        """Whether the page comes to those who wait, by what its site says."""
        return self.refused and (self.reason == "page_rate_limited" or self.wait is not None)


class LargeFile(Failure):
    """A body that may be read, if there is room for one of its size."""


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


def status_failure(
    status: int, reason: str, wait: float | None = None, *, direct: bool = False
) -> Failure | None:
    """The failure that an HTTP status means; None for success and redirects (2xx, 3xx).

    `wait` is what the answer's headers ask for, in seconds. `direct`: the site itself answered, and nothing between.
    """
    if 200 <= status < 400:
        return None
    detail = f"{status} {reason}".strip()
    if status in _GONE:
        return Failure("page_gone", detail)
    if status in _BARRED:
        return Failure("page_barred", detail)
    if status == 429:
        return Failure("page_rate_limited", detail, again=True, refused=True, wait=wait)
    if status == 503:
        return Failure("page_server_error", detail, again=True, refused=True, wait=wait, answered=direct)
    again = status in (408, 425, 500, 502, 504)
    # A proxy without a network answers 5xx too.
    return Failure("page_server_error", detail, again=again, answered=direct or status < 500)
