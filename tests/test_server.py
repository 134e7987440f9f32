"""The reward server: its endpoints, authentication, refusals and shutdown."""

import asyncio
import base64
import contextlib
import gzip
import json
import subprocess
import time
import urllib.request
from collections.abc import AsyncIterator

import aiohttp
import msgspec
import pytest

from tests.mock_openai import MockOpenAI
from tests.nightly import quick_or_whole
from tests.reward_server import SERVE, reward_server
from tests.serving import TEXT, Client, serving
from tests.worlds import world

POSTS = ("/v1/rewards", "/get_reward", "/reward", "/verify")
GYM = {
    "responses_create_params": {"input": [{"role": "user", "content": "What is fact 1?"}]},
    "response": {
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": TEXT}]},
        ]
    },
    "uuid": 7,
}


def mocked(mock: MockOpenAI, **judge: object) -> dict[str, object]:
    return {"backend": "openai", "url": mock.url, "model": "mock", "retries": 0, **judge}


class TestDialects:
    async def test_own_endpoint_scores(self, tmp_path):
        async with serving(tmp_path) as (client, _):
            items = [
                {"task_id": "0", "text": TEXT, "sample": 3},
                {"prompt": "What is fact 1?", "text": ""},
                {"task_id": "unheard of", "text": TEXT},
            ]
            status, found = await client.post(
                "/v1/rewards", {"items": items, "deadline_s": 20, "priority": 1}
            )
        assert status == 200
        rewards = found["rewards"]
        assert [(r["value"], r["status"], r["reason"]) for r in rewards] == [
            (0.8, "scored", None),
            (0.0, "scored", "report_empty"),
            (None, "unscored", "task_unknown"),
        ]
        assert rewards[0]["scores"]["score_clipped"] == 0.8
        assert (rewards[0]["n_asked"], rewards[0]["n_answered"]) == (10, 10)

    async def test_openrlhf_endpoint_scores(self, tmp_path):
        async with serving(tmp_path) as (client, _):
            prompt = "<|im_start|>user\nWhat is fact 1?<|im_end|>\n<|im_start|>assistant\n"
            body = {"query": [f"{prompt}{TEXT}<|im_end|>"], "prompts": [prompt], "labels": ["1"]}
            assert await client.post("/get_reward", body) == (
                200,
                {"rewards": [0.8], "scores": [0.8], "extra_logs": {"failed": [0]}},
            )
            by_prompt = {
                "query": [f"What is fact 1?{TEXT}</s> <eos>\n"],
                "prompts": ["What is fact 1?"],
                "labels": [None],
            }
            assert (await client.post("/get_reward", by_prompt))[1]["rewards"] == [0.8]
            _, empty = await client.post("/get_reward", {"query": [], "prompts": [], "labels": []})
            assert (empty["rewards"], empty["scores"]) == ([], [])
            _, failed = await client.post("/get_reward", {"query": ["pq"], "prompts": ["p"], "labels": ["?"]})
            assert failed["rewards"] == [None] and failed["extra_logs"]["reason"] == ["task_unknown"]
            assert (await client.post("/get_reward", {"query": ["a"], "prompts": ["a", "b"]}))[0] == 400

    async def test_prompt_is_not_part_of_the_judged_text(self, tmp_path):
        async with serving(tmp_path) as (client, _):
            prompt = "What is fact 1? Say: it states fact number 0 to 9."
            body = {"query": [f"{prompt} "], "prompts": [prompt], "labels": ["1"]}
            assert (await client.post("/get_reward", body))[1]["rewards"] == [0.0]

    async def test_slime_endpoint_scores(self, tmp_path):
        async with serving(tmp_path) as (client, _):
            asked = {"prompt": "What is fact 1?", "response": TEXT, "label": None}
            assert await client.post("/reward", asked) == (200, 0.8)
            messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "What is fact 1?"}]
            assert await client.post("/reward", {**asked, "prompt": messages}) == (200, 0.8)
            assert await client.post("/reward", {**asked, "prompt": "?"}) == (200, None)

    async def test_nemo_gym_endpoint_scores(self, tmp_path):
        async with serving(tmp_path) as (client, _):
            assert await client.post("/verify", GYM) == (200, {**GYM, "reward": 0.8})
            unknown = {**GYM, "responses_create_params": {"input": "?"}}
            assert await client.post("/verify", unknown) == (503, {"error": "task_unknown"})
            named = {**unknown, "verifier_metadata": {"task_id": "1", "x": [1]}}
            assert await client.post("/verify", named) == (200, {**named, "reward": 0.8})

    async def test_constant_replaces_a_failure_where_null_is_impossible(self, tmp_path):
        async with serving(tmp_path, on_failure={"constant": -1.0}) as (client, _):
            items = {"items": [{"task_id": "?", "text": TEXT}]}
            assert (await client.post("/v1/rewards", items))[1]["rewards"][0]["value"] is None
            assert await client.post("/reward", {"prompt": "?", "response": TEXT}) == (200, -1.0)
            _, told = await client.post("/get_reward", {"query": ["pq"], "prompts": ["p"], "labels": []})
            assert told == {"rewards": [-1.0], "scores": [-1.0], "extra_logs": {"failed": [1]}}
            _, masked = await client.post("/verify", {**GYM, "responses_create_params": {"input": "?"}})
            assert masked["reward"] == -1.0 and masked["mask_sample"] is True


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


class TestDoor:
    async def test_request_without_the_token_never_reaches_the_judge(self, tmp_path):
        async with MockOpenAI() as mock, serving(tmp_path, mocked(mock), token="s3cret") as (client, _):
            body = {"items": [{"task_id": "0", "text": TEXT}]}
            wrong = (
                {},
                {"Authorization": "Bearer s3cre"},
                {"Authorization": "Bearer s3cret2"},
                {"Authorization": "s3cret"},
                {"Authorization": "Basic s3cret"},
                {"Authorization": "Basic ???"},
                {"Authorization": _basic("s3cret", "")},
                {"Authorization": _basic("trainer", "s3cre")},
                {"Authorization": "Bearer"},
                {"Authorization": "Bearer s3cret\u00e9"},
            )
            for headers in wrong:
                for path in POSTS:
                    assert (await client.post(path, body, headers=headers))[0] == 401
                assert (await client.get("/metrics", headers=headers))[0] == 401
            assert mock.calls == 0
            for path in ("/healthz", "/readyz", "/openapi.json"):
                assert (await client.get(path))[0] == 200
            right = {"Authorization": "Bearer s3cret"}
            assert (await client.post("/v1/rewards", body, headers=right))[0] == 200
            assert "adjudge_rewards_total" in (await client.get("/metrics", headers=right))[1]
            assert mock.calls == 10
            for user in ("trainer", ""):
                headers = {"Authorization": _basic(user, "s3cret")}
                assert (await client.post("/v1/rewards", body, headers=headers))[0] == 200

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
    def test_public_address_needs_a_token(self, tmp_path, host):
        command = [*SERVE, str(world(tmp_path)), "--host", host]
        done = subprocess.run(command, capture_output=True, text=True, env={"PATH": ""}, check=False)
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1 and "ADJUDGE_TOKEN" in done.stderr

    def test_json_option_prints_the_url_as_one_document(self, tmp_path):
        command = [*SERVE, str(world(tmp_path)), "--port", "0", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said = process.stdout.readline()
            process.terminate()
            assert process.stdout.read() == ""
        assert json.loads(said)["url"].startswith("http://127.0.0.1:") and process.returncode == 0

    def test_address_in_use_gives_one_line(self, tmp_path):
        with reward_server(world(tmp_path)) as (url, _):
            command = [*SERVE, str(tmp_path / "adjudge.yaml"), "--port", url.rpartition(":")[2]]
            done = subprocess.run(command, capture_output=True, text=True, env={"PATH": ""}, check=False)
        assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1


class TestRefusals:
    @pytest.mark.parametrize("path", POSTS)
    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"{",
            b"null",
            b"[]",
            b"\xff\xfe{}",
            b'{"items": [{"text": "\xff", "task_id": "0"}]}',
            b'{"items": [{"text": "\\ud800", "task_id": "0"}]}',
            b'{"items": ' + b"[" * 200_000,
            b'{"x": ' + b'{"a":' * 200_000,
            b'{"items": [{"task_id": "0"}], "query": [1], "prompt": 1, "response": 1}',
            b'{"items": [{"text": "x", "task_id": "0"}], "deadline_s": -1, "query": {}, "response": []}',
            b'{"items": [{"text": "x"}], "query": ["x"], "response": null}',
            b'{"items": [], "deadline_s": 1e999, "query": 1, "response": 1}',
            b'{"items": [], "priority": 99999999999999999999, "query": 1, "response": 1}',
        ],
    )
    async def test_invalid_request_is_a_400(self, tmp_path, path, body):
        async with serving(tmp_path) as (client, server):
            status, said = await client.post(path, body)
            assert status == 400 and isinstance(said["error"], str)
            assert (server._admission.items, server._admission.body_bytes) == (0, 0)

    @pytest.mark.parametrize(
        ("path", "body", "says"),
        [
            ("/v1/rewards", b'{"item": []}', "unknown field 'item'; use 'items'"),
            (
                "/v1/rewards",
                b'{"items": [{"taskid": "0"}]}',
                "unknown field 'taskid' in items[0]; use 'task_id'",
            ),
            ("/v1/rewards", b'{"items": [{"id": "0"}]}', "unknown field 'id' in items[0]; use 'task_id'"),
            (
                "/v1/rewards",
                b'{"items": [{"response": "x"}]}',
                "unknown field 'response' in items[0]; use 'text'",
            ),
            ("/v1/rewards", b'{"items": {}}', "items: must be a list, not a mapping"),
            ("/v1/rewards", b'{"items": ["x"]}', "items[0]: must be a mapping, not a text"),
            ("/v1/rewards", b'{"items": [], "deadline_s": "x"}', "deadline_s: must be a number, not a text"),
            ("/v1/rewards", b"hello", "the body is not JSON (JSON is malformed"),
            ("/v1/rewards", b"", "send an object with items"),
            ("/v1/rewards", b"\xff{}", "the body is not in UTF-8, at byte 1"),
            ("/v1/reward", b"{}", "Not Found; use '/reward' or '/v1/rewards'"),
            ("/healthz", b"{}", "Method Not Allowed; use GET,HEAD"),
        ],
    )
    async def test_fault_is_answered_with_what_to_send(self, tmp_path, path, body, says):
        async with serving(tmp_path) as (client, _):
            assert says in (await client.post(path, body))[1]["error"]

    async def test_bodies_are_bounded_by_declared_and_actual_size(self, tmp_path):
        async with serving(tmp_path, limits={"body_bytes": 10_000, "batch": 3}) as (client, _):

            async def endless() -> AsyncIterator[bytes]:
                while True:
                    yield b" " * 5000

            assert (await client.post("/v1/rewards", b" " * 10_001))[0] == 413
            with contextlib.suppress(aiohttp.ClientError, ConnectionError):
                async with client.session.post(client.url + "/v1/rewards", data=endless()) as response:
                    assert response.status == 413
            many = {"items": [{"task_id": "0", "text": "x"}] * 4}
            assert (await client.post("/v1/rewards", many))[0] == 413
            packed = gzip.compress(b'{"items": []}' + b" " * 50_000)
            assert (await client.post("/reward", packed, headers={"Content-Encoding": "gzip"}))[0] == 415

    async def test_large_declared_body_is_refused_before_it_is_sent(self, tmp_path):
        async with serving(tmp_path) as (client, server):
            host, _, port = client.url.removeprefix("http://").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(
                b"POST /v1/rewards HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"
            )
            assert b" 413 " in await reader.readline()
            writer.close()
            assert server._admission.body_bytes == 0

    async def test_slow_body_times_out(self, tmp_path):
        async with serving(tmp_path, limits={"body_s": 0.3}) as (client, server):
            host, _, port = client.url.removeprefix("http://").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"POST /v1/rewards HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")

            async def drip() -> None:
                with contextlib.suppress(ConnectionError):
                    while True:
                        writer.write(b" ")
                        await writer.drain()
                        await asyncio.sleep(0.02)

            dripping = asyncio.ensure_future(drip())
            async with asyncio.timeout(20):
                assert b" 408 " in await reader.readline()
            dripping.cancel()
            writer.close()
            assert server._admission.body_bytes == 0

    async def test_excess_requests_get_429_with_retry_after(self, tmp_path):
        async with (
            MockOpenAI(latency=0.3) as mock,
            serving(tmp_path, mocked(mock), limits={"items": 4}) as (client, server),
        ):
            bodies = [{"items": [{"task_id": "0", "text": f"{n} {TEXT}"}]} for n in range(12)]

            async def one(body: object) -> tuple[int, str | None]:
                async with client.session.post(client.url + "/v1/rewards", data=json.dumps(body)) as response:
                    await response.read()
                    return response.status, response.headers.get("Retry-After")

            found = await asyncio.gather(*map(one, bodies))
            assert sorted(status for status, _ in found) == [200] * 4 + [429] * 8
            assert all(after is not None and int(after) >= 1 for status, after in found if status == 429)
            assert mock.calls == 40
            assert server._admission.items == 0
            assert (await client.post("/v1/rewards", bodies[0]))[0] == 200

    async def test_bytes_of_all_requests_are_bounded(self, tmp_path):
        async with serving(tmp_path, limits={"body_bytes": 1000, "bytes": 1500}) as (client, _):
            host, _, port = client.url.removeprefix("http://").partition(":")
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"POST /v1/rewards HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n ")
            await writer.drain()
            while (await client.post("/v1/rewards", b" " * 900))[0] != 429:
                await asyncio.sleep(0.01)
            writer.close()
            while (await client.post("/v1/rewards", b" " * 900))[0] != 400:
                await asyncio.sleep(0.01)

    async def test_unknown_paths_and_methods_are_refused(self, tmp_path):
        async with serving(tmp_path) as (client, _):
            assert (await client.get("/nothing"))[0] == 404
            assert (await client.get("/v1/rewards"))[0] == 405
            assert (await client.post("/healthz", b""))[0] == 405


class TestWaiting:
    async def test_deadline_of_a_request_bounds_it(self, tmp_path):
        async with (
            MockOpenAI(latency=60) as mock,
            serving(tmp_path, mocked(mock)) as (client, _),
        ):
            started = time.monotonic()
            body = {"items": [{"task_id": "0", "text": TEXT}] * 3, "deadline_s": 0.5}
            _, found = await client.post("/v1/rewards", body)
            assert time.monotonic() - started < 30
        assert {(r["value"], r["reason"]) for r in found["rewards"]} == {(None, "deadline")}

    async def test_disconnected_client_stops_its_work(self, tmp_path):
        async with (
            MockOpenAI(latency=60) as mock,
            serving(tmp_path, mocked(mock)) as (client, server),
        ):
            asking = asyncio.ensure_future(
                client.post("/v1/rewards", {"items": [{"task_id": "0", "text": TEXT}]})
            )
            while mock.open < 10:
                await asyncio.sleep(0.01)
            asking.cancel()
            while mock.open or server._admission.items:
                await asyncio.sleep(0.01)

    async def test_sigterm_finishes_admitted_requests(self, tmp_path):
        async with MockOpenAI(latency=1.0) as mock:
            config = world(tmp_path, judge=mocked(mock), reward={"metric": "score_clipped"})
            context = reward_server(config)
            url, process = await asyncio.to_thread(context.__enter__)
            try:
                async with aiohttp.ClientSession() as session:
                    client = Client(session, url)
                    asking = asyncio.ensure_future(
                        client.post("/v1/rewards", {"items": [{"task_id": "0", "text": TEXT}]})
                    )
                    while mock.open < 10:
                        await asyncio.sleep(0.01)
                    process.terminate()
                    status, found = await asking
                assert status == 200 and found["rewards"][0]["value"] is not None
                assert await asyncio.to_thread(process.wait, 30) == 0
            finally:
                await asyncio.to_thread(context.__exit__, None, None, None)
        assert list((tmp_path / "store" / "rewards" / "judgments").glob("*.parquet"))

    async def test_readiness_says_when_the_judge_cannot_be_used(self, tmp_path):
        async with MockOpenAI() as mock:
            wrong = mocked(mock) | {"url": mock.url.replace("/v1", "/v2")}
            async with serving(tmp_path, wrong) as (client, _):
                assert (await client.get("/readyz"))[0] == 503
                await client.post("/v1/rewards", {"items": [{"task_id": "0", "text": TEXT}]})
                assert (await client.get("/readyz"))[0] == 503
                assert (await client.get("/healthz"))[0] == 200


async def test_metrics_count_rewards_by_reason_and_judge_checks(tmp_path):
    (tmp_path / "canaries.jsonl").write_text(json.dumps({"task_id": "0", "text": TEXT, "value": 0.3}))
    watches = {
        "canary": {"file": "canaries.jsonl"},
        "audit": {"judge": "lexical", "share": 1.0},
        "penalties": {"injection": 0.5},
    }
    async with serving(tmp_path, **watches) as (client, server):
        items = [
            {"task_id": "0", "text": TEXT},
            {"task_id": "0", "text": "Dear judge."},
            {"task_id": "?", "text": ""},
        ]
        await client.post("/v1/rewards", {"items": items})
        scorer = server._scorer
        while scorer.audit.done < 2 or not scorer.canary.rounds:
            await asyncio.sleep(0.01)
        _, text = await client.get("/metrics")
    for line in (
        'adjudge_rewards_total{reason="scored"} 2.0',
        'adjudge_rewards_total{reason="task_unknown"} 1.0',
        'adjudge_reward_flags_total{flag="injection"} 1.0',
        "adjudge_canary_drift 0.5",
        "adjudge_audit_gap 0.0",
        "adjudge_items_in_flight 0.0",
    ):
        assert line in text


@pytest.mark.nightly
def test_fuzzing_by_the_openapi_document_finds_nothing(tmp_path):
    schemathesis = pytest.importorskip("schemathesis")
    hypothesis = pytest.importorskip("hypothesis")
    with reward_server(world(tmp_path, reward={"metric": "score_clipped"})) as (url, process):
        schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
        found = 0
        for result in schema.get_all_operations():
            operation = result.ok()
            for mode in schemathesis.GenerationMode:

                @hypothesis.settings(
                    max_examples=quick_or_whole(8, 60),
                    database=None,
                    derandomize=True,
                    suppress_health_check=list(hypothesis.HealthCheck),
                )
                @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
                def check(case):
                    nonlocal found
                    found += 1
                    response = case.call()
                    assert response.status_code < 500 or response.status_code == 503, response.text
                    case.validate_response(
                        response,
                        checks=[
                            schemathesis.checks.response_schema_conformance,
                            schemathesis.checks.status_code_conformance,
                        ],
                    )

                with contextlib.suppress(hypothesis.errors.Unsatisfiable):
                    check()
        assert process.poll() is None and found > quick_or_whole(50, 400)


def test_openapi_document_lists_every_endpoint(tmp_path):
    with (
        reward_server(world(tmp_path), token="t") as (url, _),
        urllib.request.urlopen(f"{url}/openapi.json") as reply,
    ):
        document = msgspec.json.decode(reply.read())
    assert set(document["paths"]) == {*POSTS, "/healthz", "/readyz", "/metrics", "/openapi.json"}
    assert document["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}
    for path in POSTS:
        assert {"200", "400", "401", "413", "429", "503"} <= set(document["paths"][path]["post"]["responses"])
