"""The kinds of numbers that settings take."""

from typing import Annotated

import msgspec

__all__ = ["Count", "NotNegative", "Positive", "Seconds"]

Count = Annotated[int, msgspec.Meta(ge=1)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e9)]  # finite: no clock waits for ever
