"""A failed attempt at a page, and what an HTTP status means.

A failure says whether another attempt can help. It never leaves the fetcher, which turns it into a page.
"""

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


class TooLarge(Failure):
    """A body beyond its limit, in bytes."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__("page_unsupported", f"larger than {max_bytes:,} bytes")


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
