"""Rollouts that come as tokens: their text, and which characters of it the policy wrote.

A tokenizer is loaded once for each name, by the package `tokenizers`: the `tokenizer.json` of a folder, or of a model
on the Hugging Face Hub. No code of a model is run.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path

import msgspec

from adjudge.engine.rewards.reward import RewardError, RewardItem

__all__ = ["masked", "worded"]

KEPT = 8
FILE = "tokenizer.json"

Decode = Callable[[list[int]], str]


def masked(tokens: Sequence[int], mask: Sequence[int], decode: Decode) -> tuple[str, list[tuple[int, int]]]:
    """The text of `tokens`, special ones kept, and the spans of characters that the policy wrote: `mask` is 1 there.

    `decode` makes text of tokens; each run of equal marks is decoded by itself, so that spans end where runs do.
    """
    text = ""
    spans = []
    for is_own, run in groupby(zip(tokens, mask, strict=True), key=lambda one: bool(one[1])):
        start = len(text)
        text += decode([token for token, _ in run])
        if is_own:
            spans.append((start, len(text)))
    return text, spans


async def worded(items: list[RewardItem], online: bool = True) -> list[RewardItem]:
    """`items` with text and mask in place of tokens. Raises RewardError.

    Unless `online`, only names of the Hub are allowed, and only what its cache on this machine holds.
    """
    if all(item.tokens is None for item in items):
        return items
    return await asyncio.to_thread(_all_read, items, online)


def _all_read(items: Sequence[RewardItem], online: bool) -> list[RewardItem]:
    return [item if item.tokens is None else _read(place, item, online) for place, item in enumerate(items)]


def _read(place: int, item: RewardItem, online: bool) -> RewardItem:
    assert item.tokens is not None
    given = item.tokens
    try:
        decode = _decoder(given.tokenizer, online)
        text, spans = masked(given.ids, given.mask or (1,) * len(given.ids), decode)
    except (OverflowError, TypeError, ValueError, IndexError) as error:
        raise RewardError(f"item {place}: tokens: {given.tokenizer} does not know them: {error}") from error
    return msgspec.structs.replace(item, tokens=None, text=text, mask=tuple(spans))


@lru_cache(maxsize=KEPT)
def _decoder(name: str, online: bool) -> Decode:
    """What makes text of tokens. Raises RewardError."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise RewardError(
            "tokens: the package tokenizers is not installed; install it, or send text with its mask"
        ) from error
    file = _file(name, online)
    try:
        known = Tokenizer.from_file(file)
    except Exception as error:  # it raises no other class
        raise RewardError(f"tokens: the tokenizer of {name} cannot be read: {error}") from error
    return lambda tokens: str(known.decode(tokens, skip_special_tokens=False))


def _file(name: str, online: bool) -> str:
    """Where the tokenizer of `name` lies on this machine. Raises RewardError."""
    from huggingface_hub import errors, hf_hub_download, try_to_load_from_cache  # comes with tokenizers
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]  # its HTTP library's

    folder = Path(name)
    if online and (folder / FILE).is_file():
        return str(folder / FILE)
    try:
        found = hf_hub_download(name, FILE) if online else try_to_load_from_cache(name, FILE)
    except (OSError, ValueError, HTTPError, errors.HfHubHTTPError) as error:
        raise RewardError(f"tokens: {name} has no {FILE} that can be had: {error}") from error
    if not isinstance(found, str):
        raise RewardError(
            f"tokens: {name} has no {FILE} in the cache of this server's Hugging Face Hub; download it there, or send "
            "text with its mask"
        )
    return found
