"""The probe: one request, and why a judge can or cannot be used."""

from typing import Any

import msgspec
import pytest

from adjudge.judges import Asked, LexicalJudge
from adjudge.judges.judgment import Probe, Verdict, probe
from adjudge.judges.openai import OpenAIJudge
from adjudge.judges.panel import PanelJudge
from adjudge.judges.server import OpenAIConfig
from adjudge.prompts import PromptBook
from tests import mock_openai
from tests.mock_openai import MockOpenAI, completion, refused, replying


def judge_of(url: str, **options: Any) -> OpenAIJudge:
    config = OpenAIConfig(url=url, model="judge-1", **{"retries": 2, "backoff_s": 0.001, **options})
    return OpenAIJudge(config, PromptBook(), b"a secret")


async def verdict(url: str, timeout_s: float = 60.0, **options: Any) -> Verdict:
    judge = judge_of(url, **options)
    try:
        [found] = await probe(judge, timeout_s)
    finally:
        await judge.close()
    assert found.is_good == (found.trouble is None) == (not found.line)
    assert "\n" not in found.line
    assert found.is_good or found.line.startswith(f"{found.where}, model judge-1: ")
    return found


async def test_good_server_passes_in_one_request() -> None:
    async with MockOpenAI(serves="judge-1", window=4096) as mock:
        found = await verdict(mock.url)
        assert (mock.probes, mock.calls) == (1, 0)
        assert mock.last is not None
        assert mock.last.constrained
        assert (await verdict(mock.url, max_context=2000)).window == 2000
    assert (found.trouble, found.where, found.window) == (None, mock.url, 4096)
    assert found.seconds > 0


async def test_thinking_judge_is_probed_with_thinking_tokens() -> None:
    async def think(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse:
        return completion(call.answer(), reasoning_content="Hm.")

    async with MockOpenAI(fault=think) as mock:
        assert (await verdict(mock.url, thinking=True, thinking_tokens=700)).is_good
        assert mock.last is not None
        assert mock.last.max_tokens > 700
        assert (await verdict(mock.url)).trouble == "thinks_unasked"


@pytest.mark.parametrize(
    ("fault", "trouble", "fix"),
    [
        ("down", "unreachable", "when it is ready"),
        ("busy", None, ""),
        ("missing-model", "wrong_model", "judge: model"),
        ("thinks", "thinks_unasked", "judge: thinking: true"),
        ("thinks-silently", "thinks_unasked", "judge: thinking: true"),
        ("thinks-aloud", "thinks_unasked", "judge: thinking: true"),
        ("prose", "thinks_unasked", "judge: thinking: true"),
        ("loose", None, ""),
        ("garbage", "ignores_schema", "response_format"),
        ("rambles", "ignores_schema", "response_format"),
        ("truncated", "cut_off", "limit of tokens"),
        ("no-max-tokens", "refuses_max_tokens", "max_tokens"),
        ("no-temperature", "unusable", "judge: temperature"),
        ("refusal", "unusable", "another model"),
        ("filtered", "unusable", "another model"),
    ],
)
async def test_sick_server_is_told_apart(fault: str, trouble: str | None, fix: str) -> None:
    async with MockOpenAI() as mock:
        found = await verdict(mock.at(fault))
    assert found.trouble == trouble
    assert fix in found.line


async def test_missing_server_is_unreachable(unused_tcp_port: int) -> None:
    found = await verdict(f"http://127.0.0.1:{unused_tcp_port}/v1")
    assert found.trouble == "unreachable"
    assert "judge: url" in found.line


async def test_silent_server_is_unreachable_in_time() -> None:
    async with MockOpenAI() as mock:
        found = await verdict(mock.at("slow"), timeout_s=0.1)
    assert found.trouble == "unreachable"
    assert "0.1 s" in found.line


async def test_window_must_hold_the_thinking() -> None:
    async with MockOpenAI() as mock:
        assert (await verdict(mock.at("small-window"))).is_good
        found = await verdict(mock.at("small-window"), thinking=True)
        assert found.trouble == "window_too_small"
        assert "thinking_tokens" in found.line
        assert (await verdict(mock.url, max_context=105)).trouble == "window_too_small"


async def test_cut_off_thinking_asks_for_more_thinking_tokens() -> None:
    async with MockOpenAI() as mock:
        found = await verdict(mock.at("thinks"), thinking=True)
    assert found.trouble == "cut_off"
    assert "judge: thinking_tokens" in found.line


@pytest.mark.parametrize(
    ("serves", "good"),
    [
        ("judge-1", True),
        ("/models/Judge-1", True),
        ("judge-1-2026-01-01", True),
        ("another", False),
    ],
)
async def test_server_of_another_model_is_recognised(serves: str, good: bool) -> None:
    async with MockOpenAI(serves=serves) as mock:
        found = await verdict(mock.url)
    assert found.trouble == (None if good else "wrong_model")
    assert good or serves in found.line


@pytest.mark.parametrize("wrapped", ["```json\n{}\n```", "{}<|return|>", "\ufeff{}"])
async def test_schema_is_kept_in_whatever_stands_around_it(wrapped: str) -> None:
    async def wrapping(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse:
        return completion(wrapped.replace("{}", call.answer()))

    async with MockOpenAI(fault=wrapping) as mock:
        found = await verdict(mock.url)
    assert found.is_good and found.manner is not None and found.manner.format == "json_schema"


async def test_plain_port_asked_by_tls_is_named() -> None:
    async with MockOpenAI() as mock:
        assert "http://" in (await verdict(mock.url.replace("http://", "https://"))).line.rpartition(";")[2]


async def test_server_that_refuses_to_constrain_may_answer() -> None:
    async def refuse(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse:
        return refused(400, "response_format: unknown") if call.constrained else completion(said)

    async with MockOpenAI(fault=refuse) as mock:
        said = 'Yes: {"ready": "yes"}'
        assert (await verdict(mock.url)).is_good
        said = "Yes."
        assert (await verdict(mock.url)).trouble == "ignores_schema"


def keeping(
    keeps: str, takes: set[str], has_system: bool = True, refusal: tuple[int, str] | None = None
) -> mock_openai.Fault:
    """A server that takes some formats, refuses the others, and keeps to the schema in one way alone."""

    async def answer(mock: MockOpenAI, call: mock_openai.Call) -> mock_openai.web.StreamResponse:
        body = msgspec.json.decode(call.body)
        if not has_system and body["messages"][0]["role"] == "system":
            return refused(400, "Only the roles user and assistant are supported")
        form = body.get("response_format", {})
        name = str(form.get("type", "words")) + ("_schema" if "schema" in form else "")
        if name not in takes:
            return refused(*(refusal or (400, f"response_format: {name} is not supported")))
        seen = {name, *(key for key in ("structured_outputs", "guided_json") if key in body)}
        return completion('{"ready": "kestrel"}' if keeps in seen else 'Sure: {"ready": "yes"}')

    return answer


EVERY = {"json_schema", "json_object_schema", "json_object", "words"}


@pytest.mark.parametrize(
    ("keeps", "takes", "format", "probes"),
    [
        ("json_schema", EVERY, "json_schema", 1),
        ("structured_outputs", EVERY, "structured_outputs", 2),
        ("guided_json", EVERY - {"json_schema"}, "structured_outputs", 2),
        ("json_object_schema", EVERY, "json_object_schema", 3),
        ("json_object_schema", EVERY - {"json_schema"}, "json_object_schema", 3),
        ("nothing", {"json_object", "words"}, "json_object", 4),
        ("nothing", {"words"}, "words", 5),
        ("nothing", EVERY, "words", 3),
    ],
)
@pytest.mark.parametrize("has_system", [True, False])
async def test_strictest_format_that_a_server_keeps_to_is_used(
    keeps: str, takes: set[str], format: str, probes: int, has_system: bool
) -> None:
    async with MockOpenAI(fault=keeping(keeps, takes, has_system)) as mock:
        judge = judge_of(mock.url)
        (found,) = await probe(judge)
        assert (found.trouble, mock.probes) == (None, probes + (not has_system))
        assert found.manner is not None and found.manner.said == format + (
            "" if has_system else ", no system message"
        )
        await judge.answer(Probe.make(), Asked(key=bytes(16)))
        assert mock.last is not None
        body = msgspec.json.decode(mock.last.body)
        await judge.close()
    named = body.get("response_format", {}).get("type", "words")
    assert named == {"structured_outputs": "words", "json_object_schema": "json_object"}.get(format, format)
    assert ("structured_outputs" in body) == ("guided_json" in body) == (format == "structured_outputs")
    roles = [message["role"] for message in body["messages"]]
    assert roles[0] == ("system" if has_system else "user") and roles.count("user") >= 1


# As llama-cpp-python 0.3.36 refuses a format that it does not know, and as servers refuse without a word.
LLAMA = (
    "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': "
    "\"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}"
)


@pytest.mark.parametrize(
    ("status", "said", "probes"),
    [(500, LLAMA, 3), (500, "Internal Server Error", 6), (400, "Bad Request", 4), (422, "", 4), (501, "", 6)],
)
async def test_format_refused_in_any_way_leaves_the_strictest(status: int, said: str, probes: int) -> None:
    fault = keeping("json_object_schema", EVERY - {"json_schema"}, refusal=(status, said))
    async with MockOpenAI(fault=fault) as mock:
        found = await verdict(mock.url)
        assert found.is_good and found.manner is not None, found.line
        assert (found.manner.format, mock.probes) == ("json_object_schema", probes)


async def test_server_that_fails_in_every_format_is_named() -> None:
    async with MockOpenAI(fault=replying(lambda: refused(500, "out of memory"))) as mock:
        found = await verdict(mock.url)
        assert found.trouble == "unreachable" and "out of memory" in found.line
        assert mock.probes == 6


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"\xff", b"{" * 100_000])
async def test_hostile_replies_are_unusable(body: bytes) -> None:
    async with MockOpenAI(fault=replying(lambda: mock_openai.raw(body))) as mock:
        found = await verdict(mock.url)
    assert found.trouble == "unusable"
    assert "judge: url" in found.line


async def test_every_member_of_a_panel_is_probed(unused_tcp_port: int) -> None:
    async with MockOpenAI() as mock:
        good, bad = judge_of(mock.url), judge_of(f"http://127.0.0.1:{unused_tcp_port}/v1")
        panel = PanelJudge([good, LexicalJudge(), bad])
        found = await probe(panel)
        await panel.close()
    assert [one.trouble for one in found] == [None, "unreachable"]
    assert await probe(LexicalJudge()) == ()
