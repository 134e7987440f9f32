"""What is added to a judge's requests and left out of them, its keys, and how many it gets a minute."""

import asyncio
import json
import pickle
import re
from pathlib import Path

import msgspec
import pytest
import yaml
from aiohttp import web

from adjudge.engine.config.judge import JudgeConfig
from adjudge.engine.config.redaction import hidden
from adjudge.engine.evaluation.assembly import make_judge
from adjudge.prompts import PromptBook
from tests.commands import one_line, run
from tests.judged_worlds import Noting, serving, two_protocols
from tests.mock_openai import NO_MAX_TOKENS, Call, MockOpenAI, completion, refused
from tests.worlds import world

MOVED = (
    "Unsupported parameter: 'max_tokens'. In the Responses API, this parameter is called 'max_output_tokens'."
)
NO_VALUE = "Unsupported parameter: 'temperature' is not supported with this model."
EXTRA = "Extra inputs are not permitted: seed"
REASONS = {"omit": ["max_tokens"], "request": {"reasoning_effort": "low", "max_completion_tokens": 9000}}


def judged(url: str, **options: object) -> dict[str, object]:
    return {"backend": "openai", "url": url, "model": "mock", "retries": 0, **options}


def sent(call: Call) -> dict[str, object]:
    body: dict[str, object] = json.loads(call.body)
    return body


async def reasoning(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
    """A server of a model that reasons: takes no max_tokens, and wants to be told how long to think."""
    if "max_tokens" in sent(call):
        return refused(400, NO_MAX_TOKENS)
    return None if "reasoning_effort" in sent(call) else refused(400, "Missing: 'reasoning_effort'")


async def test_server_without_max_tokens_needs_two_lines(tmp_path, capsys):
    async with MockOpenAI(fault=reasoning) as mock:
        config = world(tmp_path, judge=judged(mock.url))
        code, _, error = await asyncio.to_thread(run, capsys, "evaluate", config)
        line = one_line(error)
        assert code == 1 and mock.calls == 0
        assert "`omit: [max_tokens]`" in line and "`request: {max_completion_tokens: 32768}`" in line
        config = world(tmp_path, judge=judged(mock.url, **REASONS))
        code, out, _ = await asyncio.to_thread(run, capsys, "evaluate", config)
        assert code == 0 and "200 asked" in out
        assert mock.last is not None
        assert sent(mock.last)["max_completion_tokens"] == 9000
        code, out, _ = await asyncio.to_thread(run, capsys, "evaluate", config)
        assert "0 asked, 200 from the store" in out


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        (NO_MAX_TOKENS, "`request: {max_completion_tokens: 32768}`"),
        (MOVED, "`request: {max_output_tokens: 32768}`"),
        (NO_VALUE, "omit: [temperature]"),
        (EXTRA, "omit: [seed]"),
        ("Missing required parameter: 'effort'", "add missing parameters to judge: request"),
    ],
)
async def test_refused_parameter_is_answered_with_advice(tmp_path, capsys, said, advice):
    async with MockOpenAI(fault=lambda mock, call: _refuse(said)) as mock:
        code, _, error = await asyncio.to_thread(
            run, capsys, "evaluate", world(tmp_path, judge=judged(mock.url))
        )
    assert code == 1 and advice in one_line(error)


async def _refuse(said: str) -> web.StreamResponse:
    return refused(400, said)


async def test_omitted_schema_is_asked_for_in_words(tmp_path):
    """No response_format of ours in the probe or after; another one may be added."""

    async def strict(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
        if sent(call)["response_format"] != {"type": "json_object"}:
            return refused(400, "this response format is unavailable")
        return completion('{"ready": "yes"}')

    async with MockOpenAI(fault=strict) as mock:
        config = msgspec.convert(
            judged(mock.url, omit=["response_format"], request={"response_format": {"type": "json_object"}}),
            JudgeConfig,
        )
        judge = make_judge(config, PromptBook())
        [verdict] = await judge.probe()
        await judge.close()
    assert verdict.is_good, verdict.line


async def streaming(mock: MockOpenAI, call: Call) -> web.StreamResponse:
    """A server that gives events alone."""
    body = sent(call)
    if body.get("stream") is not True or body.get("stream_options") != {"include_usage": True}:
        return refused(400, "Only streaming is possible with this model.")
    said = call.answer()
    chunks = [{"choices": [{"index": 0, "delta": {"content": one}}]} for one in (said[:9], said[9:])]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    usage = {"choices": [], "usage": {"prompt_tokens": 70, "completion_tokens": 9}}
    events = [json.dumps({"model": "mock", **one}) for one in (*chunks, end, usage)]
    text = "".join(f"data: {one}\n\n" for one in (*events, "[DONE]"))
    return web.Response(text=text, content_type="text/event-stream")


async def test_answers_are_streamed_where_that_is_wanted(tmp_path, capsys):
    async with MockOpenAI(fault=streaming) as mock:
        config = world(tmp_path, systems=1, tasks=1, judge=judged(mock.url, stream=True))
        code, out, _ = await asyncio.to_thread(run, capsys, "evaluate", config)
        assert code == 0 and "10 asked" in out
    (effort,) = json.loads((tmp_path / "run/run.json").read_text())["effort"].values()
    assert (effort["prompt_tokens"], effort["completion_tokens"]) == (700, 90)
    assert fingerprint(stream=True, strict_identity=True) == fingerprint()


@pytest.mark.parametrize("strict", [False, True])
async def test_another_model_ends_a_run_that_wants_one(tmp_path, capsys, strict: bool):
    async def switching(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
        return completion(call.answer(), model="mock-2-mini") if mock.calls > 3 else None

    async with MockOpenAI(fault=switching) as mock:
        judge = judged(mock.url, strict_identity=strict, max_in_flight=1)
        config = world(tmp_path, systems=1, tasks=1, judge=judge)
        code, _, error = await asyncio.to_thread(run, capsys, "evaluate", config)
    assert code == (1 if strict else 0)
    assert "mock-2-mini" in error and ("(strict_identity)" in error) == strict


def fingerprint(**options: object) -> tuple[str, str]:
    identity = make_judge(
        msgspec.convert(judged("http://h/v1", **options), JudgeConfig), PromptBook()
    ).identity
    return identity.fingerprint, identity.sampling


def test_changed_requests_are_other_questions():
    plain = fingerprint()
    assert plain == ("mock", "temperature=0 thinking=0")
    changed = [
        fingerprint(request={"reasoning_effort": "low"}),
        fingerprint(request={"reasoning_effort": "high"}),
        fingerprint(omit=["seed"]),
        fingerprint(omit=["temperature"], request={"reasoning_effort": "low"}),
    ]
    assert len({plain, *changed}) == 5
    assert fingerprint(request={"a": 1, "b": 2}) == fingerprint(request={"b": 2, "a": 1})
    assert fingerprint(omit=["seed", "temperature"]) == fingerprint(omit=["temperature", "seed"])
    assert fingerprint(api_key_env="OTHER_KEY", requests_per_minute=5) == plain


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"request": {"model": "x"}}, "judge: request: model: every request has its own; leave it out"),
        ({"request": {"temperature": 1}}, "judge: request: temperature: every request has its own; add temp"),
        ({"request": {"api_key": "x"}}, "judge.request.api_key: keys come from the environment alone"),
        ({"request": {"max_tokens": 1}}, "add max_tokens to omit: first"),
        ({"request": {1: 1}}, "judge.request"),
        ({"omit": ["messages"]}, "judge.omit"),
        ({"omit": "seed"}, "judge.omit"),
        ({"api_key_env": "sk-not-a-name"}, "judge.api_key_env"),
        ({"requests_per_minute": 0}, "judge.requests_per_minute"),
        (
            {"headers": {"api-key": "0123"}},
            "headers: the value of api-key belongs in the environment; write {env: VARIABLE}",
        ),
        (
            {"headers": {"X-Title": "Bearer abcdef123456"}},
            "headers: the value of X-Title belongs in the environment",
        ),
        (
            {"headers": {"X-Auth": "house-9921"}},
            "headers: the value of X-Auth belongs in the environment",
        ),
        (
            {"headers": {"Host": "other.example"}},
            "judge: headers: Host: every request has its own; leave it out",
        ),
        ({"headers": {"X-Title": "a\r\nHost: b"}}, "judge.headers"),
        ({"headers": {"a b": "c"}}, "judge.headers"),
        ({"headers": {"api-key": {"env": "A", "value": "sk-not"}}}, "judge.headers"),
    ],
)
def test_unusable_option_of_a_judge_is_named(tmp_path, capsys, options, said):
    code, _, error = run(capsys, "plan", world(tmp_path, judge=judged("http://127.0.0.1:9/v1", **options)))
    assert code == 2 and said in one_line(error) and "sk-not" not in error


def test_embedded_judge_takes_no_request(tmp_path, capsys):
    code, _, error = run(capsys, "plan", world(tmp_path, judge={"backend": "lexical", "omit": ["seed"]}))
    assert code == 2 and "need backend openai" in one_line(error)


async def test_headers_are_sent_and_their_values_hidden(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("VENDOR_HEADER", "header-c4n4ry-0123")
    headers = {"Api-Key": {"env": "VENDOR_HEADER"}, "X-Title": "reports"}

    async def fault(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
        if call.is_probe or call.hash[0] < 128:
            return None
        return refused(404, f"who is {call.http.headers['api-key']}?")

    async with MockOpenAI(fault) as mock:
        config = world(tmp_path, judge=judged(mock.url, headers=headers))
        code, out, error = await asyncio.to_thread(run, capsys, "evaluate", config)
        got = mock.last.http.headers
        assert (got["Api-Key"], got["X-Title"]) == ("header-c4n4ry-0123", "reports")
    assert code in (0, 3) and "c4n4ry" not in out + error
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert written and not any(b"c4n4ry" in file.read_bytes() for file in written)


async def test_variable_of_a_header_that_is_not_set_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("VENDOR_HEADER", raising=False)
    async with MockOpenAI() as mock:
        config = world(tmp_path, judge=judged(mock.url, headers={"api-key": {"env": "VENDOR_HEADER"}}))
        code, _, error = await asyncio.to_thread(run, capsys, "evaluate", config)
    assert code == 1 and "the environment variable VENDOR_HEADER is not set" in one_line(error)


async def test_missing_key_is_named_before_the_run(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("VENDOR_ONE", raising=False)
    async with MockOpenAI() as mock:
        config = world(tmp_path, judge=judged(mock.url, api_key_env="VENDOR_ONE"))
        code, _, error = await asyncio.to_thread(run, capsys, "evaluate", config)
    assert code == 1 and "the environment variable VENDOR_ONE is not set" in one_line(error)


def test_key_is_hidden_wherever_its_judge_is_known(monkeypatch):
    monkeypatch.setenv("VENDOR_PICKLED", "a-key-that-nobody-sees")
    config = msgspec.convert(judged("http://h/v1", api_key_env="VENDOR_PICKLED"), JudgeConfig)
    assert hidden("with a-key-that-nobody-sees") == "with ***"
    assert pickle.loads(pickle.dumps(config)) == config


KEYS = {"VENDOR_ONE": "first-c4n4ry-key-0123", "VENDOR_TWO": "second-c4n4ry-key-4567"}


def echoing(key: str):
    """A server that wants `key`, and repeats the one that it got in its errors."""

    async def fault(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
        got = call.http.headers.get("Authorization", "")
        if got != f"Bearer {key}":
            return refused(401, f"wrong key: {got}")
        if not call.is_probe and call.before == 0 and call.hash[0] < 64:
            return refused(500, f"try again, {got}")
        return None

    return fault


@pytest.mark.parametrize("log", ["human", "json"])
async def test_two_keys_in_one_panel_leave_no_trace(tmp_path, capfd, monkeypatch, log):
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    monkeypatch.setenv("ADJUDGE_LOG", log)
    one, two = (MockOpenAI(fault=echoing(key)) for key in KEYS.values())
    async with one, two:
        members = [
            judged(mock.url, model=f"model{n}", api_key_env=name, retries=2)
            for n, (mock, name) in enumerate(zip((one, two), KEYS, strict=True))
        ]
        config = world(tmp_path, systems=1, judge={"backend": "panel", "members": members})
        said = [await asyncio.to_thread(run, capfd, "evaluate", config)]
        assert said[0][0] == 0 and one.calls >= 50 and two.calls >= 50
        run_folder = tmp_path / "run"
        said.append(
            await asyncio.to_thread(run, capfd, "show", run_folder, "--task", "0", "--system", "system0")
        )
        said.append(await asyncio.to_thread(run, capfd, "leaderboard", run_folder, "--json"))
        said.append(await asyncio.to_thread(run, capfd, "doctor", config))
        swapped = [
            {**member, "api_key_env": name} for member, name in zip(members, reversed(KEYS), strict=True)
        ]
        other = world(tmp_path / "swapped", judge={"backend": "panel", "members": swapped})
        said.append(await asyncio.to_thread(run, capfd, "evaluate", other))
        assert said[-1][0] == 1 and "VENDOR_" in said[-1][2]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 8
    for text in [
        *(part.encode() for code, out, err in said for part in (out, err)),
        *map(Path.read_bytes, files),
    ]:
        assert b"c4n4ry" not in text


DOCUMENT = (Path(__file__).parents[1] / "docs" / "judges.md").read_text("utf-8")
SNIPPETS = re.findall(r"^```yaml\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
async def test_documented_judge_works_as_written(tmp_path, capsys, monkeypatch, snippet):
    """Each configuration on the page, with every address replaced by a local server's."""
    for name in re.findall(r"api_key_env: (\w+)", snippet):
        monkeypatch.setenv(name, f"the-key-in-{name}")
    first, second, third = mocks = [Noting() for _ in range(3)]
    async with serving(*mocks):
        ports = {"8000": first, "8001": second, "8002": third, "4000": first}
        local = re.sub(r"http://127\.0\.0\.1:(\d+)/v1", lambda at: ports[at[1]].url, snippet)
        config = two_protocols(tmp_path, **yaml.safe_load(local))
        code, _, error = await asyncio.to_thread(run, capsys, "evaluate", config)
        # Without a judge of pictures, their part of DR3-Eval is missing.
        assert code == (0 if "image" in snippet else 3), error
        code, _, _ = await asyncio.to_thread(run, capsys, "doctor", config)
        assert code == 0
    models = {model for mock in mocks for model, _ in mock.asked}
    assert models == {
        *re.findall(r"model: ([\w-]+)", snippet),
        *re.findall(r"#([\w-]+)$", snippet, re.MULTILINE),
    }
    used = {key for mock in mocks for key in mock.keys} - {""}
    assert used == {f"Bearer the-key-in-{name}" for name in re.findall(r"api_key_env: (\w+)", snippet)}


def test_document_shows_every_kind_of_configuration():
    assert len(SNIPPETS) == 8
