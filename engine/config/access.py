"""Access over HTTP: with the bearer token, or, where no token is set, from this machine alone."""

import hmac
import ipaddress
import os

from yarl import URL

from adjudge.engine.config.errors import ConfigError

__all__ = ["LOCAL_NAMES", "TOKEN", "Access", "is_foreign", "is_local"]

TOKEN = "ADJUDGE_TOKEN"
LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})


class Access:
    """Admits requests that carry the token; without a token, all of them."""

    def __init__(self, token: str = "") -> None:
        self._token = token.encode()

    @classmethod
    def from_environment(cls, what: str, host: str) -> "Access":
        """By ADJUDGE_TOKEN, for `what` bound to `host`. Raises ConfigError for a public `host` without a token."""
        token = os.environ.get(TOKEN, "").strip()
        if not token and not _is_loopback(host):
            raise ConfigError(
                f"{what}: {host} can be reached from outside; set {TOKEN} to a secret, or bind 127.0.0.1"
            )
        return cls(token)

    @property
    def has_token(self) -> bool:
        """Whether a token is set."""
        return bool(self._token)

    def admits(self, authorization: str) -> bool:
        """Whether the value of an Authorization header is right, decided in constant time."""
        if not self._token:
            return True
        scheme, _, given = authorization.partition(" ")
        right = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), self._token)
        return right and scheme.lower() == "bearer"

    def serves(self, host: str) -> bool:
        """Whether a request with this Host header is for this server.

        Without a token only a name of this machine is: no web page may reach a server here under a name of its own.
        """
        return self.has_token or is_local(host)


def is_local(authority: str) -> bool:
    """Whether the value of a Host header names this machine."""
    try:
        return URL.build(scheme="http", authority=authority).host in LOCAL_NAMES
    except ValueError:
        return False


def is_foreign(origin: str | None, authority: str) -> bool:
    """Whether a request with this Origin header was sent by a page of another site than the Host header names."""
    if origin is None:
        return False
    try:
        return URL(origin).authority.lower() != authority.lower()
    except ValueError:
        return True


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
