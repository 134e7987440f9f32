"""Addresses that citations may lead to although they are not public: "HOST:PORT", or "HOST" on the web's ports."""

from collections.abc import Iterable

from adjudge.fetchers.urls import MalformedURL, split_url

__all__ = ["WEB_PORTS", "Allowed"]

WEB_PORTS = (80, 443)


class Allowed:
    """What `entries` name; without a port, an entry stands for its host on each of `ports`.

    Raises ValueError for an entry in neither form.
    """

    def __init__(self, entries: Iterable[str] = (), *, ports: Iterable[int] = WEB_PORTS) -> None:
        web = tuple(ports)
        self._pairs = frozenset(pair for entry in entries for pair in _pairs(entry, web))

    def holds(self, host: str, port: int) -> bool:
        """Whether an entry names this host and port."""
        return (host, port) in self._pairs


def _pairs(entry: str, ports: tuple[int, ...]) -> list[tuple[str, int]]:
    expected = "write HOST:PORT, or HOST for its web ports"
    try:
        parts = split_url(f"http://{entry}")
    except MalformedURL as error:
        raise ValueError(f"allow: {entry!r} {error}; {expected}") from None
    if parts.userinfo or parts.target != "/":
        raise ValueError(f"allow: {entry!r} is not an address; {expected}")
    has_port = entry.rpartition("]")[2].count(":") == 1
    return [(parts.host, parts.port)] if has_port else [(parts.host, port) for port in ports]
