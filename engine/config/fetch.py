"""The section `fetch:` of a configuration: where pages come from."""

from math import inf
from typing import Any, Literal, NamedTuple

import msgspec

from adjudge.engine.config.settings import ConfigError, mistake, plugin
from adjudge.engine.errors import nearest
from adjudge.fetchers.downloader import Downloader, installed_downloaders
from adjudge.fetchers.limits import DEFAULT_LIMITS, DEFAULT_TIMEOUTS, PATIENCE_S, Limits, Timeouts
from adjudge.fetchers.process import Extractor
from adjudge.fetchers.urls import Allowed

__all__ = ["FetchConfig"]


class Share(NamedTuple):
    """How many live pages a report may wait for at once, so that others come in between."""

    of_a_site: int
    in_all: int


class FetchConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where pages come from: the network, a snapshot folder (or, without one, what the store holds), or nowhere."""

    mode: Literal["live", "snapshot", "off"] = "live"
    """`live` reads the network, `snapshot` a folder of saved pages, `off` no page at all."""
    snapshot: str | None = None
    """The folder of saved pages, as `adjudge snapshot` writes it; without one, `mode: snapshot` reads what the store
    holds."""
    extractor: Extractor = "trafilatura"
    """What makes text of HTML: `trafilatura`, or `fast`, which takes a tenth of the time and keeps more of what
    surrounds the text."""
    allow: list[str] = []
    """Addresses (`HOST:PORT` or networks) that citations may lead to although they are not public."""
    limits: Limits = DEFAULT_LIMITS
    """Bounds on what is done at once and on what one page may cost."""
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    """Seconds for each step of reading a page."""
    patience_s: float = PATIENCE_S
    """Seconds for which a page that its site refuses for its load (429, or 503 with a Retry-After) is asked for again,
    slower each time. For so long, too, a run comes back to pages whose site rested or did not answer."""
    contact: str = ""
    """An address or a page that the User-Agent header names, for the owners of sites."""
    fetcher: str | dict[str, Any] | None = None
    """The installed downloader that gets live pages in place of our HTTP client: its name, or a mapping of `name` and
    its options (docs/architecture.md, A fetcher)."""
    render: Literal["never", "empty", "always"] = "never"
    """Which pages a Chromium on this machine shows before they are read: none, those that are empty without their
    scripts, or all (docs/guide.md, A browser for pages)."""
    robots: bool = False
    """Whether pages that a site's robots.txt bars are left alone (page_barred)."""
    closed: bool = False
    """For rewards: whether the pages of the snapshot, of the store, or of a rollout are all there are. Then any other
    address, and one whose page cannot be read, counts against the rollout. Needs `mode: snapshot` or `off`."""

    def __post_init__(self) -> None:
        Allowed(self.allow)  # raises ValueError for an invalid address
        if not 0 <= self.patience_s < inf:
            raise ValueError("patience_s must be finite and not negative")
        if self.closed and self.mode == "live":
            raise ValueError(
                "closed: the live web is never complete; set mode: snapshot, or off if rollouts bring their pages"
            )
        if self.render != "never" and self.fetcher is not None:
            raise ValueError("`render` does not go with a `fetcher`, which decides itself how pages are got")

    def downloader(self) -> tuple[Downloader, str] | None:
        """The downloader, and what its pages are stored under: name, version and options. Raises ConfigError."""
        if self.fetcher is None:
            return None
        options = {"name": self.fetcher} if isinstance(self.fetcher, str) else dict(self.fetcher)
        name = options.pop("name", None)
        known = installed_downloaders()
        if not isinstance(name, str) or name not in known:
            there = nearest(str(name), sorted(known)) if known else "none is installed"
            raise ConfigError(f"fetch: fetcher: unknown fetcher {name!r}; {there}")
        kind = plugin("fetch: fetcher", name, known[name].load)
        try:
            made: Downloader = msgspec.convert(options, type=kind)
        except msgspec.ValidationError as error:
            raise ConfigError(f"fetch: fetcher: {name}: {mistake(error, kind, options)}") from error
        chosen = msgspec.json.encode(options, order="deterministic").decode() if options else ""
        return made, " ".join(part for part in (name, str(made.version), chosen) if part)

    def within(self, seconds: float) -> "FetchConfig":
        """This section for one who waits at most so many `seconds` for a site that wants fewer requests."""
        return msgspec.structs.replace(self, patience_s=min(self.patience_s, seconds))

    @property
    def share(self) -> "Share | None":
        """How much of what may be read at once a report may take."""
        limits = self.limits
        return Share(-(-limits.per_host // 2), -(-limits.in_flight // 4)) if self.mode == "live" else None

    @property
    def reachable(self) -> list[str]:
        """The addresses that citations may lead to although they are not public."""
        return self.allow if self.mode == "live" else []
