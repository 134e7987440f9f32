"""A page by a downloader from outside: the guard before and after it, and its mistakes as failures."""

import asyncio
import socket

import msgspec
from aiohttp.abc import AbstractResolver

from adjudge.fetchers.downloader import Download, Downloader
from adjudge.fetchers.failures import Failure, boundary
from adjudge.fetchers.flight import forgotten
from adjudge.fetchers.guard import Blocked, Guard
from adjudge.fetchers.storable import storable
from adjudge.fetchers.urls import MalformedURL, NormalURL, normalise_url, split_url

__all__ = ["download"]


async def download(downloader: Downloader, url: NormalURL, guard: Guard) -> tuple[NormalURL, Download]:
    """Where `url` ended, and what was there. Raises Failure.

    Both URLs pass the `guard`, and their names must resolve to public addresses here; what lies between them, and what
    the downloader itself connects to, is out of its sight.
    """
    with boundary():
        await _resolved(url, guard)
    found = await _called(downloader, url)
    try:
        final = normalise_url(found.final_url or url)
        guard.check(final)
    except MalformedURL as error:
        raise _broken(f"its final URL {error}") from error
    except Blocked as error:
        raise Failure("page_blocked", str(error)) from error
    if final != url:
        with boundary():
            await _resolved(final, guard)
    return final, found


async def _resolved(url: NormalURL, guard: Guard) -> None:
    """Raise Blocked or the resolver's error unless the host of `url` is public, or allowed."""
    parts = split_url(url)
    resolver: AbstractResolver = guard.resolver
    await resolver.resolve(parts.host, parts.port, socket.AF_UNSPEC)


async def _called(downloader: Downloader, url: NormalURL) -> Download:
    async def call() -> object:
        return await downloader.download(url)

    task = asyncio.create_task(call())
    try:
        # Unlike awaiting the task, this ends at once when time is up, whatever the downloader does about it.
        await asyncio.wait({task})
    finally:
        task.cancel()
        task.add_done_callback(forgotten)
    if task.cancelled():
        raise _broken("it was cancelled")
    if (error := task.exception()) is not None:
        raise _broken(f"{type(error).__name__}: {error}") from error
    found = task.result()
    if not isinstance(found, Download):
        raise _broken(f"it returned {type(found).__name__} instead of Download")
    try:
        found = msgspec.convert(msgspec.structs.asdict(found), Download, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise _broken(str(error)) from error
    content_type = storable(found.content_type)[:300]
    return msgspec.structs.replace(found, content_type=content_type, final_url=storable(found.final_url))


def _broken(why: str) -> Failure:
    return Failure("network_unavailable", f"the downloader failed: {why}", again=True)
