"""One spelling for every URL: URLs that are equal after normalisation are fetched once.

Reads URLs the way browsers do (WHATWG URL Standard), so that the host that is checked is the one that is connected to:
backslashes are slashes, one slash behind the scheme is as good as two, tabs and newlines vanish, and every way to write
an IPv4 address (`2130706433`, `0x7f.1`, `0177.0.0.1`, full-width digits) becomes the dotted one. Strings from outside
are cleaned so that every table and message can hold them.

A user may allow citations to lead to non-public addresses: "HOST:PORT", or "HOST" on the web's ports.
"""

import base64
import hashlib
import ipaddress
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Generic, NamedTuple, NewType, TypeVar
from urllib.parse import quote, unquote_to_bytes, urljoin

import idna

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """`text` with U+FFFD for each lone surrogate, which UTF-8 cannot encode, and without NUL characters."""
    return _UNSTORABLE.sub(lambda found: "" if found[0] == "\0" else "\ufffd", text)


NormalURL = NewType("NormalURL", str)
"""A URL in its normal form. Only `normalise_url` makes one."""

V = TypeVar("V")

MAX_URL = 8192
DEFAULT_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"(?P<scheme>https?):/+(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?P<query>\?[^#]*)?", re.I)
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*", re.A)
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+", re.A)
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})", re.A)
_STRAY_PERCENT = re.compile(r"%(?![0-9a-fA-F]{2})", re.A)
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# What may stand unescaped besides the unreserved characters; "%" because escapes are normalised before.
_PATH_SAFE = "%/:@!$&'()*+,;="
_QUERY_SAFE = _PATH_SAFE + "?"
_USER_SAFE = "%:!$&'()*+,;="


class MalformedURL(ValueError):
    """Not a usable http or https URL; the message says why."""


class Parts(NamedTuple):
    """A normal URL taken apart. `port` is always given; an IPv6 `host` has no brackets."""

    scheme: str
    userinfo: str
    host: str
    port: int
    target: str


def normalise_url(url: str) -> NormalURL:
    """The one spelling of `url`, which is its own normal form. Raises MalformedURL and nothing else.

    A notice that sends its readers on (`google.com/url?q=` and others), or a viewer of documents, is the address that
    it names. Scheme and host in lower case (IDNA, trailing dot dropped), default port and fragment dropped, empty path
    "/", dot segments resolved, percent-encoding in upper case and only where needed; the query keeps its order. At most
    8,192 characters.
    """
    return NormalURL(_join(split_url(url)))


@lru_cache(maxsize=4096)
def split_url(url: str) -> Parts:
    """The parts of `url` in their normal form. Raises MalformedURL and nothing else."""
    parts = _split(url)
    # One notice may name another; what is named is shorter than what names it, so this ends.
    while (named := _named(parts)) is not None and len(_join(named)) < len(_join(parts)):
        parts = named
    return parts


# PDF.js, which may name a file as seen from itself.
_BESIDE_VIEWER = ("file",)
# Viewers of documents, and notices that name the address in a field of their own: host with path, and the fields.
_NAMING = tuple(
    (re.compile(place, re.A), names)
    for place, names in (
        (r"(?:www\.)?google\.(?:com?\.)?[a-z]{2,3}/url", ("q", "url")),
        (r"[a-z0-9]+\.safelinks\.protection\.outlook\.com/", ("url",)),
        (r"(?:www\.)?bing\.com/ck/a", ("u",)),
        (r"(?:docs|drive)\.google\.com/(?:viewer|gview|viewerng/viewer)", ("url",)),
        (r"view\.officeapps\.live\.com/op/(?:view|embed)\.aspx", ("src",)),
        (r"[^/]+/(?:.*/)?web/viewer\.html", _BESIDE_VIEWER),
    )
)
# How a host or a page is called that sends its readers on to another site: `link.zhihu.com/?target=`, `/away.php?to=`.
_SENDING = (
    r"(?:lm?|links?|link\d|linkout|linkfilter|href|out|outbound|away|exit|leav(?:e|ing)|go|goto|gotolink|go-?wild|jump"
    r"|(?:[a-z]{1,12}-)?redir(?:ect)?|sinaurl)"
)
_SENDS_ON = re.compile(rf"{_SENDING}\.[^/]+/[^/]*|[^/]+/(?:.*/)?{_SENDING}(?:\.[a-z]{{2,5}})?/?", re.A | re.I)
# Fields of an address that it does not lead to.
_BESIDE = re.compile(r"(?:ref|refer|source|src|from|back|return|next|continue|callback|login)", re.I)
_CODED = re.compile(r"a1([\w-]{8,8192})")  # Bing's: base 64


def _named(parts: Parts) -> Parts | None:
    """The address that a notice leads to or a viewer shows, if `parts` are one's."""
    path, _, query = parts.target.partition("?")
    if not query:
        return None
    place = parts.host + path
    fields = [(key, value) for key, _, value in (field.partition("=") for field in query.split("&"))]
    for shape, names in _NAMING:
        if shape.fullmatch(place):
            beside = parts if names is _BESIDE_VIEWER else None
            written = (_written(value, beside) for name in names for key, value in fields if key == name)
            return next(filter(None, written), None)
    if not _SENDS_ON.fullmatch(place):
        return None
    whole = _written(query)
    others = {whole} if whole else {_written(value) for key, value in fields if not _BESIDE.match(key)}
    found = [one for one in others if one is not None and one.host != parts.host]
    return found[0] if len(found) == 1 else None


def _written(value: str, beside: Parts | None = None) -> Parts | None:
    """The address that the value of a field is, or that it is as seen from the page that it stands `beside`."""
    coded = _CODED.fullmatch(value)
    try:
        if coded:
            return _split(base64.urlsafe_b64decode(coded[1] + "=" * (-len(coded[1]) % 4)).decode())
        address = unquote_to_bytes(value.replace("+", " ")).decode()
        if beside is not None and address:
            address = urljoin(_join(beside), address.replace("\\", "/"))
        return _split(address)
    except ValueError:  # malformed, or no text
        return None


def _split(url: str) -> Parts:
    if len(url) > MAX_URL:
        raise MalformedURL(f"is longer than {MAX_URL} characters")
    try:
        url.encode()
    except UnicodeEncodeError:
        raise MalformedURL("has lone surrogates") from None
    cleaned = re.sub(r"[\t\r\n]", "", url.strip("".join(map(chr, range(33)))))
    head, mark, tail = cleaned.partition("?")
    match = _URL.match(head.replace("\\", "/") + mark + tail)
    if match is None:
        raise MalformedURL("does not begin with http:// or https://")
    scheme = match["scheme"].lower()
    userinfo, _, host_and_port = match["authority"].rpartition("@")
    host, port = _split_port(host_and_port)
    path = _remove_dots(_encode(match["path"] or "/", _PATH_SAFE))
    query = _encode(match["query"], _QUERY_SAFE) if match["query"] else ""
    parts = Parts(
        scheme,
        _encode(userinfo, _USER_SAFE),
        _normal_host(host),
        port or DEFAULT_PORTS[scheme],
        path + query,
    )
    if len(_join(parts)) > MAX_URL:
        raise MalformedURL(f"is longer than {MAX_URL} characters when encoded")
    return parts


def join_url(base: NormalURL, location: str) -> NormalURL:
    """The normal form of a redirect's `location` seen from the normal URL `base`. Raises MalformedURL."""
    if len(location) > MAX_URL:
        raise MalformedURL(f"is longer than {MAX_URL} characters")
    try:
        joined = urljoin(base, location.strip().replace("\\", "/"))
    except ValueError:
        raise MalformedURL("has no usable host and port") from None
    return normalise_url(joined)


# Fields of a query that tell a site where its reader came from, and which no page depends on: Google Analytics and Ads,
# Microsoft, Meta, X, TikTok, LinkedIn, Yandex, Mailchimp, HubSpot, Marketo.
_ORIGIN = re.compile(
    r"utm_\w{1,40}|gclid|gclsrc|dclid|gbraid|wbraid|gad_source|gad_campaignid|_ga|_gl|srsltid|msclkid|fbclid|igshid|twclid"
    r"|ttclid|li_fat_id|yclid|_openstat|mc_[ce]id|_hsenc|_hsmi|mkt_tok",
    re.A | re.I,
)


def page_parts(url: str, *, keep_www: bool = True, keep_slash: bool = False) -> Parts:
    """The parts of `url` that tell its page from others. Raises MalformedURL.

    As `split_url`, without the scheme and its own port (0), the slash that ends the path, fields of the query that
    say where a reader came from (`utm_*`, `gclid`, ...) and, unless `keep_www`, a leading "www.". All other fields and
    the case of the path may make another page.
    """
    parts = split_url(url)
    path, _, query = parts.target.partition("?")
    fields = [field for field in query.split("&") if not _ORIGIN.fullmatch(field.partition("=")[0])]
    query = "&".join(fields) if query else ""
    return Parts(
        "",
        parts.userinfo,
        parts.host if keep_www else parts.host.removeprefix("www."),
        0 if parts.port == DEFAULT_PORTS[parts.scheme] else parts.port,
        (path if keep_slash else path.rstrip("/")) + (f"?{query}" if query else ""),
    )


def page_key(url: str) -> str:
    """The key that all addresses of one page share: `page_parts` as text. Raises MalformedURL."""
    parts = page_parts(url)
    userinfo = f"{parts.userinfo}@" if parts.userinfo else ""
    return f"//{userinfo}{parts.host}{f':{parts.port}' if parts.port else ''}{parts.target}"


class ByPage(Generic[V]):
    """What is known of pages by their addresses, found by any address of a page: its own first, then its key's."""

    def __init__(self, known: Mapping[NormalURL, V]) -> None:
        self._known = known
        self._addresses: dict[str, NormalURL] = {}
        for address in known:
            self._addresses.setdefault(page_key(address), address)

    def find(self, address: NormalURL) -> tuple[NormalURL, V] | None:
        """The address under which the page at `address` is known, and what is known; None if nothing is."""
        found = address if address in self._known else self._addresses.get(page_key(address))
        return None if found is None else (found, self._known[found])


def site_of(url: str) -> str:
    """The site that `url` belongs to, for limits per site. Raises MalformedURL.

    Without a leading "www.": the two names often redirect to each other and are mostly one server.
    """
    return split_url(url).host.removeprefix("www.")


def worker_of(url: str, workers: int) -> int:
    """Which of `workers` reads `url`: a site always has the same one, so its limits hold across all of them.

    A malformed URL goes to worker 0.
    """
    try:
        site = site_of(url)
    except MalformedURL:
        return 0
    return int.from_bytes(hashlib.blake2b(site.encode(), digest_size=8).digest()) % workers


def _join(parts: Parts) -> str:
    userinfo = f"{parts.userinfo}@" if parts.userinfo else ""
    host = f"[{parts.host}]" if ":" in parts.host else parts.host
    port = "" if parts.port == DEFAULT_PORTS[parts.scheme] else f":{parts.port}"
    return f"{parts.scheme}://{userinfo}{host}{port}{parts.target}"


def _split_port(host_and_port: str) -> tuple[str, int | None]:
    match = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::([0-9]*))?", host_and_port, re.A)
    if match is None:
        raise MalformedURL("has no usable host and port")
    digits = (match[2] or "").lstrip("0")
    if len(digits) > 5 or (match[2] and not 0 < int(digits or 0) < 65536):
        raise MalformedURL("has a port that does not exist")
    return match[1], int(digits) if digits else None


def _normal_host(host: str) -> str:
    if host.startswith("["):
        return _normal_ipv6(host[1:-1])
    if len(host) > 1024:
        raise MalformedURL("has a host name that is too long")
    try:
        decoded = unquote_to_bytes(host).decode()
        if not decoded.isascii():
            decoded = _idna(decoded)
    except UnicodeError as error:  # idna.IDNAError is one
        raise MalformedURL(f"has no usable host name ({error})"[:200]) from None
    name = decoded.lower().removesuffix(".")
    last = name.rpartition(".")[2]
    if _NUMBER.fullmatch(last):
        return _normal_ipv4(name)
    if len(name) > 253 or not _HOST.fullmatch(name) or any(len(label) > 63 for label in name.split(".")):
        raise MalformedURL("has no usable host name")
    return name


def _idna(host: str) -> str:
    mapped = idna.uts46_remap(host, std3_rules=False, transitional=False)
    labels = re.split("[.\u3002\uff0e\uff61]", mapped)
    return ".".join(label if label.isascii() else idna.alabel(label).decode() for label in labels)


def _normal_ipv4(name: str) -> str:
    """One to four numbers, each decimal, octal or hexadecimal; the last fills the bytes that are left."""
    numbers = [_ipv4_number(part) for part in name.split(".")]
    *leading, last = numbers
    if len(numbers) > 4 or any(number > 255 for number in leading) or last >= 256 ** (5 - len(numbers)):
        raise MalformedURL("has an IPv4 address that does not exist")
    value = last + sum(number << 8 * (3 - position) for position, number in enumerate(leading))
    return str(ipaddress.IPv4Address(value))


def _ipv4_number(part: str) -> int:
    if not _NUMBER.fullmatch(part) or len(part) > 32:
        raise MalformedURL("has an IPv4 address that does not exist")
    try:
        if part[:2] in ("0x", "0X"):
            return int(part[2:] or "0", 16)
        return int(part, 8 if part[0] == "0" else 10)
    except ValueError:
        raise MalformedURL("has an IPv4 address that does not exist") from None


def _normal_ipv6(address: str) -> str:
    try:
        parsed = ipaddress.IPv6Address(address)
    except ValueError:
        raise MalformedURL("has an IPv6 address that does not exist") from None
    if parsed.scope_id is not None:
        raise MalformedURL("has an IPv6 address with a zone")
    return str(parsed)


def _encode(text: str, safe: str) -> str:
    def escape(match: re.Match[str]) -> str:
        character = chr(int(match[1], 16))
        return character if character in _UNRESERVED else match[0].upper()

    return quote(_ESCAPE.sub(escape, _STRAY_PERCENT.sub("%25", text)), safe=safe + "~")


def _remove_dots(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments[1:]:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def printable(url: str) -> str:
    """A malformed `url` as it can be stored: valid Unicode, at most 8,192 characters."""
    return storable(url[:MAX_URL])


WEB_PORTS = (80, 443)


class Allowed:
    """The addresses that `entries` name; without a port, an entry means its host on the web's ports.

    Raises ValueError for an entry in neither form.
    """

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._pairs = frozenset(pair for entry in entries for pair in _pairs(entry))

    def holds(self, host: str, port: int) -> bool:
        """Whether an entry names this host and port."""
        return (host, port) in self._pairs


def _pairs(entry: str) -> list[tuple[str, int]]:
    expected = "write HOST:PORT, or HOST for its web ports"
    try:
        parts = split_url(f"http://{entry}")
    except MalformedURL as error:
        raise ValueError(f"allow: {entry!r} {error}; {expected}") from None
    if parts.userinfo or parts.target != "/":
        raise ValueError(f"allow: {entry!r} is not an address; {expected}")
    has_port = entry.rpartition("]")[2].count(":") == 1
    return [(parts.host, parts.port)] if has_port else [(parts.host, port) for port in WEB_PORTS]
