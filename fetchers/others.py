"""Whether the rest of the network works, which tells a site's failure from our own."""

import time
from collections.abc import Awaitable, Callable

from adjudge.fetchers.flight import SingleFlight

__all__ = ["Others"]

_RECENT = 60.0
_MANY_SITES = 256


class Others:
    """Remembers for a minute which sites worked. Where none did, `probe` finds out, at most once a minute.

    Only public sites say something about a public one; a site of the user's own network answers without the internet.
    `clock` is in seconds.
    """

    def __init__(
        self, probe: Callable[[], Awaitable[bool]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._probe = probe
        self._clock = clock
        self._worked: dict[str, tuple[float, bool]] = {}
        self._probed_at = -_RECENT
        self._found = False
        self._flight: SingleFlight[None, bool] = SingleFlight()

    def worked(self, site: str, *, public: bool) -> None:
        """Note that `site` works now."""
        self._worked.pop(site, None)
        self._worked[site] = self._clock(), public
        if len(self._worked) > _MANY_SITES:
            del self._worked[next(iter(self._worked))]

    async def work(self, site: str, *, public: bool) -> bool:
        """Whether another site than `site` worked within the last minute."""
        since = self._clock() - _RECENT
        seen = any(
            when > since and (other_public or not public)
            for other, (when, other_public) in self._worked.items()
            if other != site
        )
        return seen or await self._flight.do(None, self._probe_again)

    async def close(self) -> None:
        """Cancel a probe that is under way."""
        await self._flight.close()

    async def _probe_again(self) -> bool:
        if self._clock() - self._probed_at >= _RECENT:
            self._found = await self._probe()
            self._probed_at = self._clock()
        return self._found
