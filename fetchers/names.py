"""Turns host names into addresses by the system's name servers and hosts file, without threads."""

import socket
from collections.abc import Awaitable, Callable, Sequence

import aiodns
from aiodns.error import ARES_ENODATA, ARES_ENOTFOUND, DNSError

__all__ = ["NO_SUCH_NAME", "NameServers", "NamesUnavailable", "Resolve"]

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
