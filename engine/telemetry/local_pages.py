"""Pages for people over HTTP, on this machine only.

What they show is hostile: a content policy allows a page's own scripts and styles and nothing else, and a request whose
Host is not a name of this machine is refused, so that no web page can read them by making its own name resolve to this
machine. A request that changes something must come from one of the pages themselves.
"""

from collections.abc import Awaitable, Callable

from aiohttp import web

from adjudge.engine.config.access import is_foreign, is_local

__all__ = ["HEADERS", "HOST", "local_only"]

HOST = "127.0.0.1"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def local_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse what is not from this machine, and what another site's page sends; give every response its headers."""
    host = request.headers.get("Host", "")
    if not is_local(host):
        response: web.StreamResponse = web.Response(status=421, text="not served under this name\n")
    elif request.method not in ("GET", "HEAD") and is_foreign(request.headers.get("Origin"), host):
        response = web.Response(status=403, text="sent by another site\n")
    else:
        try:
            response = await handler(request)
        except web.HTTPException as error:
            response = web.Response(status=error.status, text=f"{error.reason}\n")
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response
