"""What users, judges, reports and trainers send, drawn at random: it is read, or refused in a stated way.

    python -m pytest tests/test_fuzz.py -m soak -s

ADJUDGE_FUZZ_S sets for how long each kind is drawn (600 seconds). What that found is kept in `FOUND`.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from adjudge.engine.config.reward import Constant, Length
from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.errors import UsageError
from adjudge.engine.formats.messages import Conversation
from adjudge.engine.rewards.flags import FLAGS, flags_of
from adjudge.engine.rewards.flags import Said as Report
from adjudge.engine.rewards.reward import Reward, as_items, settled
from adjudge.engine.serving.dialects import DIALECTS, BadRequest, NoReward
from adjudge.engine.viewer.data.passages import nearest, said_at
from adjudge.judges import Question
from adjudge.judges.chat import MAX_REPLY_CHARS, read_reply
from adjudge.judges.completions import BrokenReply, completion, models
from adjudge.judges.schema import schema_of
from adjudge.scoring.text.citation_marks import Labels, pieces
from adjudge.scoring.text.citations import MAX_FACTS, cited, parse
from adjudge.scoring.text.cleaning import clean_report
from tests.examples_of_questions import example, question_types
from tests.growth import GRAMMAR
from tests.layouts import LAYOUTS, VALUES, any_line, check_line
from tests.random_judge import drawn

SECONDS = float(os.environ.get("ADJUDGE_FUZZ_S", "600"))


class Fuzzer(NamedTuple):
    """What is drawn, and what must hold of it."""

    inputs: st.SearchStrategy[Any]
    check: Callable[[Any], None]


def run(fuzzer: Fuzzer, examples: int, start: int) -> None:
    """Check `examples` inputs, the same for the same `start`."""
    test = settings(max_examples=examples, database=None, suppress_health_check=list(HealthCheck))(
        given(fuzzer.inputs)(fuzzer.check)
    )
    seed(start)(test)()


def texts_of(said: Conversation | None) -> list[str]:
    return [said or ""] if said is None or isinstance(said, str) else [message.text for message in said]


def in_utf8(*texts: str) -> bool:
    return all(isinstance(text.encode(), bytes) for text in texts)


# A judge's reply.

QUESTIONS: dict[str, Question[Any]] = {kind.__name__: example(kind) for kind in question_types()}
AROUND = (
    *(
        "<think>",
        "</think>",
        "</thinking>",
        "```json\n",
        "```",
        "{",
        "}",
        "[",
        "]",
        '"',
        "\\",
        ",",
        ":",
        " ",
        "\n",
    ),
    *(
        "null",
        "NaN",
        "1e999",
        "-0",
        "{}",
        '{"a":',
        "Sure: ",
        "\x00",
        "\ud800",
        "\ufeff",
        "9" * 400,
        "{" * 2_000,
    ),
)


class Said(NamedTuple):
    """A reply in its parts: texts, and whole answers as JSON."""

    question: str
    parts: list[str]
    answers: list[str]
    finish_reason: str


@st.composite
def replies(draw: st.DrawFn) -> Said:
    name = draw(st.sampled_from(sorted(QUESTIONS)))
    schema, random = schema_of(QUESTIONS[name], True), draw(st.randoms(use_true_random=False))
    answers = [json.dumps(drawn(schema, random)) for _ in range(draw(st.integers(0, 2)))]
    around = st.lists(st.sampled_from(AROUND) | st.text(max_size=6), max_size=4)
    parts = draw(around)
    for answer in answers:
        written = bytearray(answer.encode())
        for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
            at = draw(st.integers(0, len(written)))
            written[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=2))
        parts += [written.decode("utf-8", "replace"), *draw(around)]
    return Said(
        name, parts, answers, draw(st.sampled_from(["stop", "stop", "length", "abort", "", "refusal"]))
    )


def check_reply(said: Said) -> None:
    """There is an answer or a reason, and the answer is one that the reply holds whole and alone."""
    question, text = QUESTIONS[said.question], "".join(said.parts)
    reply = read_reply(question, text, said.finish_reason)
    assert (reply.answer is None) == (reply.reason is not None) and len(reply.text) <= MAX_REPLY_CHARS
    again = read_reply(question, reply.text, "stop")
    if reply.answer is not None:
        whole = msgspec.json.encode(reply.answer).decode()
        assert again.answer == reply.answer == read_reply(question, whole, "stop").answer
        assert read_reply(question, f"{reply.text}\n{whole}", "stop").answer in (None, reply.answer)
    for answer in said.answers:
        other = read_reply(question, f"{text}\n{answer}", "stop").answer
        assert other is None or other == read_reply(question, answer, "stop").answer


COMPLETION = {
    "id": "1",
    "model": "m",
    "choices": [{"message": {"role": "assistant", "content": "{}"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    "data": [{"id": "m", "max_model_len": 4096}],
}


@st.composite
def mutated(draw: st.DrawFn, body: dict[str, Any]) -> bytes:
    """`body` as JSON with values changed, dropped and added at any depth, then perhaps with bytes changed."""
    made = json.loads(json.dumps(body))
    for _ in range(draw(st.integers(0, 3))):
        node = made
        while isinstance(node, dict | list) and node:
            key = draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
            if not isinstance(node[key], dict | list) or draw(st.booleans()):
                if draw(st.booleans()):
                    del node[key]
                else:
                    node[key] = draw(VALUES)
                break
            node = node[key]
    text = bytearray(json.dumps(made, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass"))
    for _ in range(draw(st.sampled_from([0, 0, 1, 3]))):
        at = draw(st.integers(0, len(text)))
        text[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(text)


def check_completion(body: bytes) -> None:
    models(body)
    try:
        found = completion(body)
    except BrokenReply:
        return
    assert found.usage.prompt_tokens >= 0 and len(found.finish_reason) <= 40
    read_reply(QUESTIONS["Clean"], found.text, found.finish_reason, found.usage, 0.0, found.refusal)


# A report's marks.

REPORTS = st.lists(st.sampled_from(GRAMMAR) | st.text(max_size=5), max_size=40).map("".join)


def check_report(text: str) -> None:
    """Whatever is found of a report can be stored, and stands in it."""
    found = parse.__wrapped__(text)
    sourced = tuple(passage for passage in found.passages if passage.sources)
    assert cited.__wrapped__(text) == msgspec.structs.replace(found, passages=sourced)
    assert len(found.unresolved) <= found.marks
    assert len(found.triplets) <= MAX_FACTS
    assert all(triplet.fact and triplet.url for triplet in found.triplets)
    facts = [passage.fact for passage in found.passages]
    assert in_utf8(*facts, *(passage.raw for passage in found.passages), *(one.url for one in found.triplets))
    known = frozenset(reference.label for reference in found.references)
    assert (
        "".join(
            piece if isinstance(piece, str) else piece.raw for piece in pieces(text, Labels(known, known))
        )
        == text
    )
    cleaned = clean_report.__wrapped__(text)
    assert in_utf8(cleaned) and len(cleaned) <= len(text)
    flags = flags_of(Report(text), Length(), set(FLAGS))
    assert all(0 <= value <= 1 for value in flags.values())
    for span in (*said_at(text, facts[:3]), nearest(text, text[:40])):
        assert span is None or 0 <= span.start < span.end <= len(text)


# A configuration.

CONFIGURATION: dict[str, Any] = {
    "tasks": "tasks.jsonl",
    "reports": ["reports/*.jsonl"],
    "format": "adjudge",
    "protocols": ["race", {"name": "fact", "extraction": "markers"}, "rubrics"],
    "judge": {"backend": "openai", "url": "http://127.0.0.1:1/v1", "model": "m", "max_in_flight": 4},
    "fetch": {"mode": "snapshot", "snapshot": "pages", "allow": ["a.test:80"]},
    "store": "store",
    "out": "run",
    "repeats": 2,
    "seed": 3,
    "cluster": {"evaluators": 2},
    "prices": {"m": {"input": 1.0}},
    "reward": {
        "weights": {"overall": {"weight": 2, "clip": [0, 1]}},
        "penalties": {"injection": 1},
        "clip": [0, 1],
    },
    "until_resolved": "overall:a,b",
}
YAML = (
    "&a ",
    "*a",
    "<<: ",
    "!!python/object:a ",
    "!!binary ",
    "? ",
    "- ",
    "{",
    "}",
    "[",
    "]",
    "|\n",
    ">\n",
    "%",
    "---\n",
)
YAML += (
    "tasks: ",
    "judge: ",
    "a: ",
    "\n",
    "  ",
    "#",
    "'",
    '"',
    "\t",
    "1e999",
    ".inf",
    ".nan",
    "0x",
    "2001-01-01",
    "~",
)


@st.composite
def configurations(draw: st.DrawFn) -> bytes:
    if draw(st.booleans()):
        return "".join(draw(st.lists(st.sampled_from(YAML) | st.text(max_size=4), max_size=25))).encode(
            "utf-8", "surrogatepass"
        )
    sections = draw(st.lists(st.sampled_from(sorted(CONFIGURATION)), unique=True))
    body = draw(mutated({"tasks": "tasks.jsonl"} | {name: CONFIGURATION[name] for name in sections}))
    try:
        return yaml.safe_dump(json.loads(body)).encode() if draw(st.booleans()) else body
    except (ValueError, yaml.YAMLError):
        return body


def check_configuration(text: bytes) -> None:
    """It is a configuration that reads the same again, or one line says what is wrong with it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adjudge.yaml"
        path.write_bytes(text)
        try:
            config = RunConfig.load(path)
        except UsageError as error:
            assert str(error) and "\n" not in str(error), error
            return
    plain = msgspec.json.decode(msgspec.json.encode(config))
    assert RunConfig.of(plain) == config
    try:
        config.resolved.cluster, config.resolved.is_on_cluster, config.rooted("/x")
    except ConfigError as error:
        assert "\n" not in str(error)


# A trainer's request.

MESSAGES = [
    {"role": "user", "content": "What is fact 0?"},
    {"role": "assistant", "content": [{"type": "text", "text": "It is so.<|im_end|>"}]},
]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/rewards": {
        "items": [{"task_id": "0", "text": "It is so."}, {"prompt": "p", "text": "t", "sample": 1}],
        "deadline_s": 3,
        "priority": 1,
    },
    "/get_reward": {"query": ["p It is so.</s>", "q"], "prompts": ["p", "q"], "labels": ["0", 1]},
    "/reward": {"prompt": MESSAGES, "response": "It is so.<|im_end|>", "label": "0"},
    "/verify": {
        "responses_create_params": {"input": MESSAGES},
        "response": {"output": [{"type": "message", **MESSAGES[1]}]},
        "verifier_metadata": {"task_id": 3},
    },
}
REWARDS = (Reward(value=0.5, status="scored"), Reward(value=None, status="unscored", reason="deadline"))


def check_request(drawn: tuple[str, bytes]) -> None:
    """It is a call of rollouts that can be stored, and its reply can be sent; or the request is refused."""
    dialect, raw = next(one for one in DIALECTS if one.path == drawn[0]), drawn[1]
    try:
        call = dialect.read(raw)
    except BadRequest as error:
        assert str(error)
        return
    for item in as_items(call.items):
        assert in_utf8(*texts_of(item.said), *texts_of(item.prompt), str(item.task_id or ""))
    rewards = [REWARDS[number % 2] for number in range(len(call.items))]
    for reward in (rewards, rewards[::-1]):
        for on_failure in ("none", Constant(0.0)):
            try:
                values = [settled(one, on_failure) for one in reward]
                assert msgspec.json.encode(dialect.reply(raw, reward, values))
            except NoReward:
                assert on_failure == "none"


# All of them.


def check_row(drawn: tuple[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_line(drawn[0], Path(folder), drawn[1])


def rows(layout: str) -> st.SearchStrategy[tuple[str, bytes]]:
    return st.tuples(st.just(layout), any_line(layout) | st.binary(max_size=60))


def requests(path: str) -> st.SearchStrategy[tuple[str, bytes]]:
    return st.tuples(st.just(path), mutated(BODIES[path]) | st.binary(max_size=60))


FUZZERS = {
    "rows": Fuzzer(st.sampled_from(sorted(LAYOUTS)).flatmap(rows), check_row),
    "replies": Fuzzer(replies(), check_reply),
    "completions": Fuzzer(mutated(COMPLETION), check_completion),
    "reports": Fuzzer(REPORTS, check_report),
    "configurations": Fuzzer(configurations(), check_configuration),
    "requests": Fuzzer(st.sampled_from(sorted(BODIES)).flatmap(requests), check_request),
}

ANSWER = (
    '{"analysis": "", "comprehensiveness": 5, "insight": 5, "instruction_following": 5, "readability": 5}'
)
FOUND: list[tuple[str, Any]] = [
    ("replies", Said("DimensionWeights", ["</think>", "<think>", ANSWER], [], "stop")),
    ("configurations", b'{"tasks": "t", "cluster": {"\\ud800\\udc00": []}}'),
    ("requests", ("/verify", b'{"\x80": 1, "response": {"output": []}, "task_id": "0"}')),
]


def test_every_dialect_is_drawn() -> None:
    assert {dialect.path for dialect in DIALECTS} == set(BODIES)


@pytest.mark.parametrize(("name", "case"), FOUND)
def test_what_was_found_stays_read_or_refused(name: str, case: Any) -> None:
    FUZZERS[name].check(case)


@pytest.mark.parametrize("name", FUZZERS)
def test_anything_is_read_or_refused(name: str) -> None:
    run(FUZZERS[name], examples=200, start=0)


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + 600)
@pytest.mark.parametrize("name", FUZZERS)
def test_anything_is_read_or_refused_at_length(name: str) -> None:
    until, rounds = time.monotonic() + SECONDS, 0
    while time.monotonic() < until:
        rounds += 1
        run(FUZZERS[name], examples=1_000, start=rounds)
    print(f"\n{name}: {rounds * 1_000:,} inputs")
