"""Where a URL from a report may lead: to the public web, never into a private network.

Two gates. `Guard.check` sees each URL before it is requested, redirects included: credentials, port, and the
address if the host is one. `Guard.socket` sees each address at the moment it is connected to, so that a name
server's second answer cannot get around it. The resolver between them drops addresses that would be refused.
"""

import ipaddress
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from aiohttp.abc import AbstractResolver, ResolveResult

from adjudge.fetchers.allowed import WEB_PORTS, Allowed
from adjudge.fetchers.names import NO_SUCH_NAME, NameServers, NamesUnavailable, Resolve
from adjudge.fetchers.others import Others
from adjudge.fetchers.urls import split_url

__all__ = ["Blocked", "Guard", "is_public"]

_NEVER_NAMES = ("invalid", "example", "test")  # RFC 2606
_ALWAYS_A_NAME = "example.com"

# IANA's special-purpose registries, multicast and reserved space, and the one metadata service with a public
# address. Written out so that the answer does not depend on the Python version's own list.
_REFUSED_V4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "168.63.129.16/32",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.31.196.0/24",
            "192.52.193.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "192.175.48.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
        ),
    )
)
_GLOBAL_V6 = IPv6Network("2000::/3")
# Within the global range: protocol assignments (Teredo among them), documentation, 6to4.
_REFUSED_V6 = tuple(
    map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"))
)
_NAT64 = IPv6Network("64:ff9b::/96")


class Blocked(OSError):
    """The guard refuses. An OSError, so that a connector treats it as any connection that failed."""


def is_public(address: str) -> bool:
    """Whether a literal IPv4 or IPv6 address belongs to the open internet; False for any other text.

    Addresses that carry an IPv4 address (mapped, NAT64) are judged by it; 6to4 and Teredo are refused.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address):
        if parsed.scope_id is not None:
            return False
        inner = _inner_v4(parsed)
        if inner is None:
            return parsed in _GLOBAL_V6 and not any(parsed in network for network in _REFUSED_V6)
        parsed = inner
    return not any(parsed in network for network in _REFUSED_V4)


def _inner_v4(address: IPv6Address) -> IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None


class Guard:
    """Lets the open internet through, and what `allow` names: "HOST:PORT", or "HOST" on the `ports`.

    An allowed host may resolve to any address. `resolve` stands in for the system's resolver. Raises
    ValueError for an entry that is neither form.
    """

    def __init__(
        self, allow: Iterable[str] = (), *, ports: Iterable[int] = WEB_PORTS, resolve: Resolve | None = None
    ) -> None:
        self._ports = frozenset(ports)
        self._allowed = Allowed(allow, ports=self._ports)
        self._granted: set[tuple[str, int]] = set()
        self._resolver = _Resolver(self, resolve)

    @property
    def resolver(self) -> AbstractResolver:
        """For the connector: names to addresses that may be connected to. Blocked if all are refused."""
        return self._resolver

    def check(self, url: str) -> None:
        """Raises Blocked if the normal URL `url` may not be asked for, whatever its host resolves to."""
        parts = split_url(url)
        if parts.userinfo:
            raise Blocked("credentials in the URL")
        if self.allows(parts.host, parts.port):
            return
        if parts.port not in self._ports:
            raise Blocked(f"port {parts.port}")
        if _is_address(parts.host) and not is_public(parts.host):
            raise Blocked(f"{parts.host} is not a public address")

    def allows(self, host: str, port: int) -> bool:
        """Whether `allow` names this host and port."""
        return self._allowed.holds(host, port)

    def grant(self, address: str, port: int) -> None:
        """Let `address`, to which an allowed name has resolved, pass at the socket."""
        self._granted.add((address, port))

    def socket(self, info: tuple[int, int, int, str, tuple[str | int, ...]]) -> socket.socket:
        """A socket for the address in `info` (as from getaddrinfo). Raises Blocked instead of connecting."""
        family, kind, protocol, _, where = info
        address, port = str(where[0]), int(where[1])
        if not (is_public(address) or self.allows(address, port) or (address, port) in self._granted):
            raise Blocked(f"{address} is not a public address")
        return socket.socket(family, kind, protocol)


class _Resolver(AbstractResolver):
    """Names to addresses that the guard lets through."""

    def __init__(self, guard: Guard, resolve: Resolve | None) -> None:
        self._guard = guard
        self._servers = NameServers()
        self._resolve = resolve or self._servers.addresses
        self._others = Others(self._names_resolve)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        internal = self._guard.allows(host, port)
        addresses = await self._looked_up(host, port, public=not internal)
        if internal:
            for address in addresses:
                self._guard.grant(address, port)
        else:
            refused = [address for address in addresses if not is_public(address)]
            addresses = [address for address in addresses if address not in refused]
            if not addresses:
                raise Blocked(f"{host} resolves to {', '.join(refused[:3]) or 'nothing'}")
        self._others.worked(host, public=not internal)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        await self._others.close()
        await self._servers.close()

    async def _looked_up(self, host: str, port: int, *, public: bool) -> list[str]:
        """The addresses of `host`. Raises NamesUnavailable where its failure may have been any name's."""
        try:
            return await self._resolve(host, port)
        except socket.gaierror as error:
            never = error.errno in NO_SUCH_NAME and host.rpartition(".")[2] in _NEVER_NAMES
            if never or await self._others.work(host, public=public):
                raise
            raise NamesUnavailable("no name resolves here") from error

    async def _names_resolve(self) -> bool:
        """Whether a name that always exists does so here."""
        try:
            return any(map(is_public, await self._resolve(_ALWAYS_A_NAME, 443)))
        except socket.gaierror:
            return False


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
