"""Fixtures that tests of several modules share."""

from tests.browser import browser
from tests.small_ray import small_ray

__all__ = ["browser", "small_ray"]
