"""A Hugging Face Hub with one data set, on loopback: its HTTP API as far as a download needs it."""

import json
from dataclasses import dataclass, field
from urllib.parse import unquote

from tests.servers.base import Exchange, Server

COMMIT = "c0ffee" + "0" * 34


@dataclass
class Hub(Server):
    """Serves `files` of the data set `name` at COMMIT (branch main); with a `token`, to those who send it alone.

    `stated` changes the sizes that the listing states.
    """

    name: str = "someone/bridges"
    files: dict[str, bytes] = field(default_factory=dict)
    token: str = ""
    stated: dict[str, int] = field(default_factory=dict)
    tokens: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.otherwise = self._answer

    async def _answer(self, exchange: Exchange) -> None:
        path = unquote(exchange.request.path.partition("?")[0])
        given = exchange.request.headers.get("authorization", "")
        self.tokens.append(given)
        if self.token and given != f"bearer {self.token}".lower():
            await exchange.reply(b"", "X-Error-Code: GatedRepo", status="401 Unauthorized")
            return
        resolve = f"/datasets/{self.name}/resolve/{COMMIT}/"
        if path in (f"/api/datasets/{self.name}/revision/{one}" for one in ("main", COMMIT)):
            listed = [
                {"rfilename": name, "size": self.stated.get(name, len(body)), "blobId": "0" * 40}
                for name, body in self.files.items()
            ]
            body = {"id": self.name, "sha": COMMIT, "siblings": listed, "private": False, "tags": []}
            await exchange.reply(json.dumps(body).encode(), content_type="application/json")
        elif path.startswith(f"/api/datasets/{self.name}/revision/"):
            await exchange.reply(b"", "X-Error-Code: RevisionNotFound", status="404 Not Found")
        elif path.removeprefix(resolve) in self.files:
            await self._send(exchange, self.files[path.removeprefix(resolve)])
        else:
            await exchange.reply(b"", "X-Error-Code: RepoNotFound", status="404 Not Found")

    async def _send(self, exchange: Exchange, body: bytes) -> None:
        head = [f'ETag: "{len(body)}"', f"X-Repo-Commit: {COMMIT}", f"Content-Length: {len(body)}"]
        lines = "\r\n".join(["HTTP/1.1 200 OK", *head]) + "\r\n\r\n"
        await exchange.send(lines.encode() + (b"" if exchange.request.method == "HEAD" else body))
