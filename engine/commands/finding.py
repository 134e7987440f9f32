"""One thing that the doctor looked at."""

import msgspec

__all__ = ["Finding"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """`mend` says what to do when it is not `good`."""

    what: str
    good: bool
    found: str
    mend: str = ""
