"""One result of the doctor."""

import msgspec


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check; `fix` says what to do if it is not `good`."""

    what: str
    good: bool
    found: str
    fix: str = ""
