"""A name server on UDP in its own thread: answers some names, denies some, and leaves the others without an answer."""

import socket
import struct
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Self

_A = 1
_NO_SUCH_NAME = 3


class NameServer:
    """`known` maps names to IPv4 addresses; "" says that there is no such name. Use as a context manager."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = known
        self.asked: list[str] = []

    def __enter__(self) -> Self:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self._socket.getsockname())
        self._thread.join(10)
        self._socket.close()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._socket.getsockname()[1]}"

    def _serve(self) -> None:
        while True:
            query, sender = self._socket.recvfrom(4096)
            if not query:
                return
            name, end = _name(query)
            (kind,) = struct.unpack_from(">H", query, end)
            self.asked.append(name)
            address = self._known.get(name)
            if address is None:
                continue
            found = bool(address) and kind == _A
            flags = 0x8180 | (0 if address else _NO_SUCH_NAME)
            head = query[:2] + struct.pack(">HHHHH", flags, 1, found, 0, 0)
            record = struct.pack(">HHHIH", 0xC00C, _A, 1, 60, 4) + socket.inet_aton(address) if found else b""
            self._socket.sendto(head + query[12 : end + 4] + record, sender)


def _name(query: bytes) -> tuple[str, int]:
    """The name that is asked for, and where it ends."""
    labels, at = [], 12
    while length := query[at]:
        labels.append(query[at + 1 : at + 1 + length].decode().lower())
        at += length + 1
    return ".".join(labels), at + 1
