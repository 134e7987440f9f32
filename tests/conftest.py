"""Fixtures that tests of several modules share."""

from tests.browser import browser

__all__ = ["browser"]
