"""How long a site asks its visitors to wait: Retry-After (RFC 9110, 10.2.3) and the headers of rate limits."""

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")
_EPOCH = 1e9  # a larger X-RateLimit-Reset is a date, in seconds since 1970
_SPENT = re.compile(r"0+")
_RESET = re.compile(r"(?:^|[;,])\s*(?:t|reset)\s*=\s*([0-9]{1,12})", re.I)
_LEFT = re.compile(r"(?:^|[;,])\s*(?:r|remaining)\s*=\s*([0-9]{1,12})", re.I)
_LONGEST_HEADER = 400


def retry_after(value: str | None, now: float) -> float | None:
    """Seconds to wait by a Retry-After header, given in seconds or as an HTTP date.

    None if it says neither. `now` is in seconds since the epoch. A date in the past is 0, one without a zone is UTC;
    a number of seconds is at most 1e9.
    """
    if value is None:
        return None
    text = value.strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), 1e9)
    try:
        until = parsedate_to_datetime(text)
        if until.tzinfo is None:
            until = until.replace(tzinfo=UTC)
        return max(0.0, until.timestamp() - now)
    except (TypeError, ValueError, OverflowError, IndexError):
        return None


def wait_asked(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds after which a site that refused a request takes the next one, by its `headers`; None if they do not say.

    Retry-After counts before RateLimit (draft-ietf-httpapi-ratelimit-headers: `t=` or `reset=` seconds) and
    `[X-]RateLimit-Reset` (seconds, or a date in seconds since 1970).
    """
    asked = retry_after(headers.get("Retry-After"), now)
    return _reset(headers, now) if asked is None else asked


def wait_advised(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds until a site takes more requests, where its rate limit says that this answer was the last; else None."""
    said = headers.get("RateLimit", "")[:_LONGEST_HEADER]
    left = [int(found) for found in _LEFT.findall(said)]
    spent = any(
        _SPENT.fullmatch(headers.get(name, "").strip())
        for name in ("RateLimit-Remaining", "X-RateLimit-Remaining")
    )
    return _reset(headers, now) if spent or 0 in left else None


def _reset(headers: Mapping[str, str], now: float) -> float | None:
    said = [float(found) for found in _RESET.findall(headers.get("RateLimit", "")[:_LONGEST_HEADER])]
    if said:
        return max(said)
    for name in ("RateLimit-Reset", "X-RateLimit-Reset"):
        text = headers.get(name, "").strip()
        if _SECONDS.fullmatch(text):
            seconds = min(float(text), 1e12)
            return max(0.0, seconds - now) if seconds >= _EPOCH else seconds
    return None
