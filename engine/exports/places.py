"""Names of systems and tasks as the names of files and folders."""

import hashlib
from urllib.parse import quote

__all__ = ["place"]

_SAFE = " ()[]{},;:=+@!'&~"
_MAX_BYTES = 200


def place(name: str) -> str:
    """`name` as one part of a path, another for every name: percent-encoded where it could lead elsewhere, or cut."""
    found = name
    if any(char in name for char in "/\\%") or name.startswith(".") or not name.isprintable() or not name:
        found = quote(name, safe=_SAFE, errors="replace").replace(".", "%2E", 1) or "%"
    if len(found.encode("utf-8", "replace")) <= _MAX_BYTES:
        return found
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{found.encode('utf-8', 'replace')[: _MAX_BYTES - 20].decode('utf-8', 'ignore')}~{digest}"
