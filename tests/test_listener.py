"""Where an HTTP server of this process listens."""

import aiohttp
import pytest
from aiohttp import web

from adjudge.engine.errors import UsageError
from adjudge.engine.telemetry.http import listen


async def test_bound_port_is_a_usage_error_that_names_its_key():
    first, second = web.AppRunner(web.Application()), web.AppRunner(web.Application())
    url = await listen(first, "serve", "127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            assert answer.status == 404
        port = int(url.rpartition(":")[2])
        with pytest.raises(UsageError, match=rf"view: 127\.0\.0\.1 port {port} cannot be bound"):
            await listen(second, "view", "127.0.0.1", port)
        assert second.server is None
    finally:
        await first.cleanup()
