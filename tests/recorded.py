"""What the benchmarks' own code asked and found on made data: digests and numbers in `golden/published/`."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tests.shared_data import GOLDEN

__all__ = ["Recording", "digest", "recorded", "recording", "write"]

FOLDER = GOLDEN / "published"


class Recording(msgspec.Struct, frozen=True):
    """The digests of all requests, sorted, each as often as it was sent; and what was made of the replies, by name."""

    requests: list[str]
    figures: dict[str, Any]


def recording(figures: Mapping[str, Any], requests: Counter[str] | None = None) -> Recording:
    """What is kept of a run: the digests of its requests (bodies as text), and its figures."""
    return Recording(sorted(map(digest, (requests or Counter()).elements())), dict(figures))


def recorded(name: str) -> Recording:
    """The recording of this name."""
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Recording)


def write(name: str, found: Recording) -> Path:
    """Keep a recording: one line for each figure."""
    figures = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.figures.items())
    file = FOLDER / f"{name}.json"
    text = f'{{"requests": {json.dumps(found.requests)},\n"figures": {{\n{figures}\n}}}}\n'
    file.write_text(text, encoding="utf-8")
    return file


def digest(value: Any) -> str:
    """The blake2b-32 of `value` as JSON, its numbers to nine digits."""
    text = json.dumps(_rounded(value), ensure_ascii=True, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value + 0.0:.9g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if abs(value) >= 10**9 else f"{value:.9g}"
    if isinstance(value, dict):
        return {str(key): _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value
