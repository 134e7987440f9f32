"""`adjudge serve` before clients that mean harm: other sites' pages, half-open and slow requests, full disks."""

import pytest

from adjudge.engine.config.access import is_foreign, is_local
from tests.test_server import TEXT, serving

BODY = {"items": [{"task_id": "0", "text": TEXT}]}


class TestBrowsers:
    async def test_foreign_host_is_refused_without_a_token(self, tmp_path):
        """A page whose own name resolves to this machine sends that name as Host."""
        async with serving(tmp_path) as (client, _):
            for path in ("/metrics", "/healthz", "/openapi.json"):
                assert (await client.get(path, headers={"Host": "evil.example:8300"}))[0] == 421
            assert (await client.post("/v1/rewards", BODY, headers={"Host": "evil.example"}))[0] == 421
            for name in ("localhost:8300", "127.0.0.1", "[::1]:8300"):
                assert (await client.post("/v1/rewards", BODY, headers={"Host": name}))[0] == 200

    async def test_any_host_is_served_with_the_token(self, tmp_path):
        async with serving(tmp_path, token="s3cret") as (client, _):
            headers = {"Host": "rewards.example", "Authorization": "Bearer s3cret"}
            assert (await client.post("/v1/rewards", BODY, headers=headers))[0] == 200

    @pytest.mark.parametrize("token", ["", "s3cret"])
    async def test_posts_of_other_sites_pages_are_refused(self, tmp_path, token):
        async with serving(tmp_path, token=token) as (client, _):
            with_token = {"Authorization": f"Bearer {token}"}
            for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "http://[", "file://"):
                headers = {"Origin": origin, **with_token}
                assert (await client.post("/v1/rewards", BODY, headers=headers))[0] == 403
            headers = {"Origin": client.url, **with_token}
            assert (await client.post("/v1/rewards", BODY, headers=headers))[0] == 200


@pytest.mark.parametrize(
    "name", ["evil.example", "127.0.0.1.evil.example", "localhost@evil", "", "a b", "[::1"]
)
def test_other_names_are_not_local(name):
    assert not is_local(name)


def test_only_the_same_host_and_port_are_not_foreign():
    assert not is_foreign(None, "127.0.0.1:8300")
    assert not is_foreign("http://LOCALHOST:8300", "localhost:8300")
    assert is_foreign("http://localhost:8301", "localhost:8300") and is_foreign("null", "localhost:8300")
