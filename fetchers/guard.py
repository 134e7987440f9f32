"""Where a URL from a report may lead: to the public web, never into a private network.

There are two gates. `Guard.check` sees every URL before it is requested, redirects included: credentials, port, and the
address if the host is one. `Guard.socket` sees every address when it is connected to, so that a name server's second
answer cannot get around it. The resolver between them uses the system's name servers and hosts file, without threads,
and drops addresses that would be refused.

To tell a site's failure from our own, the module also checks whether the rest of the network works.
"""

import ipaddress
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import aiodns
from aiodns.error import ARES_ENODATA, ARES_ENOTFOUND, DNSError
from aiohttp.abc import AbstractResolver, ResolveResult

from adjudge.fetchers.flight import SingleFlight
from adjudge.fetchers.urls import Allowed, split_url

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""A host and port to addresses. Raises socket.gaierror."""

NO_SUCH_NAME = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
_SECONDS = 2.0
_TRIES = 3


class NamesUnavailable(OSError):
    """No name resolves here, so the failure says nothing about the name that was asked for."""


class NameServers:
    """The system's name servers, or `servers` ("ADDRESS:PORT"). Any number of names is looked up at once."""

    def __init__(self, servers: Sequence[str] | None = None) -> None:
        self._servers = servers
        self._resolver: aiodns.DNSResolver | None = None

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of `host`, each once. Raises socket.gaierror."""
        if self._resolver is None:
            self._resolver = aiodns.DNSResolver(self._servers, timeout=_SECONDS, tries=_TRIES)
        try:
            found = await self._resolver.getaddrinfo(
                host, family=socket.AF_UNSPEC, port=port, type=socket.SOCK_STREAM
            )
        except DNSError as error:
            code, said = error.args
            no_such = code in (ARES_ENOTFOUND, ARES_ENODATA)
            raise socket.gaierror(socket.EAI_NONAME if no_such else socket.EAI_AGAIN, said) from error
        return list(dict.fromkeys(node.addr[0].decode() for node in found.nodes))

    async def close(self) -> None:
        """End the lookups under way."""
        if self._resolver is not None:
            await self._resolver.close()


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
        """Whether another site than `site` worked within the last minute, or does by the time that the probe fails."""
        return (
            self._seen(site, public)
            or await self._flight.do(None, self._probe_again)
            or self._seen(site, public)
        )

    def _seen(self, site: str, public: bool) -> bool:
        since = self._clock() - _RECENT
        return any(
            when > since and (other_public or not public)
            for other, (when, other_public) in self._worked.items()
            if other != site
        )

    async def close(self) -> None:
        """Cancel a probe that is under way."""
        await self._flight.close()

    async def _probe_again(self) -> bool:
        if self._clock() - self._probed_at >= _RECENT:
            self._found = await self._probe()
            self._probed_at = self._clock()
        return self._found


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


PUBLIC_PORTS = (80, 443, 8080, 8443)
"""Where public web servers listen: what a port is for, its number does not say, and the address is checked."""


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
    """Lets the open internet through on the `ports`, and what `allow` names: "HOST:PORT", or "HOST" on 80 and 443.

    An allowed host may resolve to any address. `resolve` stands in for the system's resolver. Raises
    ValueError for an entry that is neither form.
    """

    def __init__(
        self,
        allow: Iterable[str] = (),
        *,
        ports: Iterable[int] = PUBLIC_PORTS,
        resolve: Resolve | None = None,
    ) -> None:
        self._ports = frozenset(ports)
        self._allowed = Allowed(allow)
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
