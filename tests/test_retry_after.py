"""Retry-After as fetchers and judges read it: neither folder may import the other, and both read it alike."""

import time
from collections.abc import Callable
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.fetchers import waits
from adjudge.judges import completions

RetryAfter = Callable[[str | None, float], float | None]
BOTH = pytest.mark.parametrize(
    "retry_after", [waits.retry_after, completions.retry_after], ids=["fetchers", "judges"]
)


@BOTH
@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        ("120", 120.0),
        ("1.5", 1.5),
        (" 7 ", 7.0),
        ("9" * 400, 1e9),
        (formatdate(1_030.0, usegmt=True), 30.0),
        (formatdate(900.0, usegmt=True), 0.0),
        ("-5", None),
        ("inf", None),
        ("nan", None),
        ("1e9", None),
        ("soon", None),
        ("", None),
        ("Fri, 31 Dec 99999999999 23:59:59 GMT", None),
    ],
)
def test_retry_after_against_theory(
    retry_after: RetryAfter, header: str | None, seconds: float | None
) -> None:
    assert retry_after(header, 1_000.0) == seconds


@BOTH
@pytest.mark.parametrize("header", ["Thu, 01 Jan 1970 00:17:10", "Thu Jan  1 00:17:10 1970"])
def test_date_without_zone_is_utc(
    retry_after: RetryAfter, header: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert retry_after(header, 1_000.0) == 30.0
    finally:
        monkeypatch.undo()
        time.tzset()


@BOTH
@given(header=st.text() | st.from_regex(r"[A-Z][a-z]{2}, \d+ [A-Z][a-z]{2} \d+ \d+:\d+:\d+ \S+"))
def test_retry_after_parses_any_header(retry_after: RetryAfter, header: str) -> None:
    wait = retry_after(header, 1_000.0)
    assert wait is None or 0 <= wait < float("inf")
