"""The profile of a judge: what a fast one is asked, and that its answers are kept apart from an exact one's."""

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.commands.plan import plan
from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.evaluation.assembly import make_judge
from adjudge.judges import Answer, Asked, Context, Question, Reply, Usage
from adjudge.judges.completions import cache_tokens
from adjudge.judges.completions import completion as read
from adjudge.judges.expected import Labels, NoProbabilities, Step, spoken_distribution
from adjudge.judges.openai import OpenAIJudge
from adjudge.judges.profile import TokensSeen
from adjudge.judges.server import OpenAIConfig
from adjudge.prompts import PromptBook
from tests.commands import one_line, run
from tests.mock_openai import Call, MockOpenAI, completion, raw, refused
from tests.rated import Points, Rated
from tests.worlds import world

SERVER = {"backend": "openai", "url": "http://127.0.0.1:9/v1", "model": "mock", "retries": 0}
WEIGHTS = {0.0: 1.0, 0.5: 2.0, 1.0: 5.0, 10.0: 8.0}
_METRICS = b"""# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",cache_dtype="fp8",engine="0",num_gpu_blocks="100",num_gpu_blocks_override="7"} 1
vllm:cache_config_info{block_size="16",cache_dtype="fp8",engine="1",num_gpu_blocks="50"} 1.0
"""


class Listing(Answer, frozen=True, kw_only=True):
    analysis: Annotated[str, msgspec.Meta(max_length=400)] = ""
    names: Annotated[list[Annotated[str, msgspec.Meta(max_length=20)]], msgspec.Meta(max_length=3)]


class ListOf(Question[Listing], frozen=True, kw_only=True):
    prompt = "probe"
    answer = Listing


def letters(wholes: Sequence[str], weights: Sequence[float]) -> list[Step]:
    """The likeliest of `wholes`, a letter a token, each beside all letters that may stand there."""
    said, steps = "", []
    best = max(range(len(wholes)), key=weights.__getitem__)
    while said != wholes[best]:
        masses: dict[str, float] = {}
        for whole, weight in zip(wholes, weights, strict=True):
            if whole.startswith(said) and len(whole) > len(said):
                masses[whole[len(said)]] = masses.get(whole[len(said)], 0.0) + weight
        token = wholes[best][len(said)]
        steps.append(
            Step(token, {one: math.log(mass / sum(masses.values())) for one, mass in masses.items()})
        )
        said += token
    return steps


def places(steps: Sequence[Step]) -> dict[str, Any]:
    content = [
        {
            "token": step.token,
            "logprob": step.likely[step.token],
            "top_logprobs": [{"token": token, "logprob": log} for token, log in step.likely.items()],
        }
        for step in steps
    ]
    return {"content": content}


def enumerated(schema: Mapping[str, Any]) -> list[Any] | None:
    """The labels of a schema of one field."""
    fields = list(schema.get("properties", {}).values())
    return fields[0].get("enum") if len(fields) == 1 else None


class Telling(MockOpenAI):
    """A server that gives the probabilities of its tokens where they are asked for, by WEIGHTS.

    `sent` are the bodies of all requests but probes; `metrics` is what it says of its cache.
    """

    def __init__(self, metrics: bytes | None = None, **options: Any) -> None:
        super().__init__(fault=self._tell, **options)
        self.sent: list[dict[str, Any]] = []
        self.metrics = metrics

    async def _handle(self, http: web.BaseRequest) -> web.StreamResponse:
        if http.path == "/metrics" and self.metrics is not None:
            return raw(self.metrics, content_type="text/plain")
        return await super()._handle(http)

    async def _tell(self, mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
        body = json.loads(call.body)
        if not call.is_probe:
            self.sent.append(body)
        labels = enumerated(json.loads(call.schema or b"{}"))
        if labels is None or not body.get("logprobs"):
            return None
        (name,) = json.loads(call.schema)["properties"]
        wholes = [f'{{"{name}": {json.dumps(label)}}}' for label in labels]
        steps = letters(wholes, [WEIGHTS.get(label, 1.0) for label in labels])
        told = msgspec.json.decode(completion("".join(step.token for step in steps)).body)
        told["choices"][0]["logprobs"] = places(steps)
        return raw(msgspec.json.encode(told))


def asking(url: str, **options: Any) -> OpenAIJudge:
    config = OpenAIConfig(url=url, model="mock", retries=0, **{"profile": "fast", **options})
    return OpenAIJudge(config, PromptBook(), b"secret")


def question(number: int = 0) -> Rated:
    return Rated(context=Context.of(report=f"report {number}"), values=tuple(WEIGHTS))


async def answered(judge: OpenAIJudge, asked: Question[Any], number: int = 0) -> Reply[Any]:
    return await judge.answer(asked, Asked(key=number.to_bytes(16, "big")))


# -- what is asked


async def test_verdict_is_the_mean_over_labels() -> None:
    async with Telling() as mock:
        judge = asking(mock.url)
        assert (await judge.probe())[0].is_good
        reply = await answered(judge, question())
        await judge.close()
    total = sum(WEIGHTS.values())
    assert reply.answer is not None
    assert reply.answer.points == pytest.approx(sum(label * w / total for label, w in WEIGHTS.items()))
    found = {float(label): p for label, p in json.loads(reply.text).items()}
    assert found == {label: pytest.approx(weight / total, abs=1e-6) for label, weight in WEIGHTS.items()}
    first, *more = mock.sent
    assert (first["logprobs"], first["top_logprobs"]) == (True, 20)
    schemas = [body["response_format"]["json_schema"]["schema"] for body in mock.sent]
    assert enumerated(schemas[0]) == [0, 0.5, 1, 10] and list(schemas[0]["properties"]) == ["points"]
    # 10 is the likeliest, and 1 stands beside it; 0 and 0.5 begin alike, so they are asked about again.
    assert [enumerated(schema) for schema in schemas[1:]] == [[0, 0.5]] and len(more) == 1
    assert reply.usage == Usage(200, 100, 40)


async def test_exact_judge_analyses_and_asks_for_no_probabilities() -> None:
    async with Telling() as mock:
        judge = asking(mock.url, profile="exact")
        reply = await answered(judge, question())
        await judge.close()
    assert reply.answer is not None and reply.answer.analysis
    (body,) = mock.sent
    assert "logprobs" not in body
    assert list(body["response_format"]["json_schema"]["schema"]["properties"]) == ["analysis", "points"]


async def test_answer_of_more_than_a_verdict_is_asked_as_before() -> None:
    listing = ListOf(context=Context.of(report="report"))
    bodies = []
    for profile in ("exact", "fast"):
        async with Telling() as mock:
            judge = asking(mock.url, profile=profile)
            assert (await answered(judge, listing)).answer is not None
            await judge.close()
        bodies += mock.sent
    assert bodies[0] == bodies[1]


async def test_budget_is_what_answers_took() -> None:
    async with Telling() as mock:
        judge = asking(mock.url)
        for number in range(101):
            await answered(judge, ListOf(context=Context.of(report=f"report {number}")), number)
        await judge.close()
    assert (
        mock.sent[0]["max_tokens"] > 300 and mock.sent[-1]["max_tokens"] == 20
    )  # the server says 20 of each


async def test_answer_cut_at_a_low_budget_gets_all_its_tokens() -> None:
    async def cut(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
        is_short = call.max_tokens < 100 and not call.is_probe
        return completion('{"analysis": "on and', "length") if is_short else None

    async with MockOpenAI(fault=cut) as mock:
        judge = asking(mock.url)
        for number in range(102):
            asked = ListOf(context=Context.of(report=f"report {number}"))
            assert (await answered(judge, asked, number)).answer is not None
        await judge.close()
    assert mock.calls == 104  # the last two twice


async def test_contexts_at_a_server_fit_into_its_cache() -> None:
    report = "A sentence of the report. " * 120  # about 800 tokens, and 260 of each question and answer
    async with Telling(metrics=_METRICS, latency=0.02) as mock:
        judge = asking(mock.url, max_in_flight=64)
        await judge.probe()
        asked = [
            Rated(context=Context.of(report=f"{number} {report}"), values=tuple(WEIGHTS))
            for number in range(8)
        ]
        await asyncio.gather(*(answered(judge, one, number) for number, one in enumerate(asked)))
        await judge.close()
    assert mock.peak == 2  # a third report would need more than 2,400 tokens


@pytest.mark.parametrize(
    ("body", "tokens"), [(_METRICS, 2400), (b"", None), (None, None), (b"vllm:cache_config_info{", None)]
)
def test_size_of_a_cache_is_read_from_metrics(body: bytes | None, tokens: int | None) -> None:
    assert cache_tokens(body) == tokens


async def test_server_without_probabilities_cannot_be_used(tmp_path, capsys) -> None:
    async with MockOpenAI() as mock:
        config = world(tmp_path, judge={**SERVER, "url": mock.url, "profile": "fast"})
        code, _, error = await asyncio.to_thread(run, capsys, "evaluate", config)
        assert code == 1 and mock.calls == 0
    assert "gives no probabilities of tokens (logprobs)" in one_line(error)
    assert "set judge: profile: exact" in error


async def test_reply_without_probabilities_is_no_answer() -> None:
    async with MockOpenAI() as mock:
        judge = asking(mock.url)
        reply = await answered(judge, question())
        await judge.close()
    assert (reply.answer, reply.reason) == (None, "judge_unsupported")
    assert reply.usage.prompt_tokens == 100


async def test_refusal_in_a_branch_is_the_reason() -> None:
    class Refusing(Telling):
        async def _tell(self, mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
            is_branch = enumerated(json.loads(call.schema)) == [0, 0.5]
            return refused(413, "too large") if is_branch else await super()._tell(mock, call)

    async with Refusing() as mock:
        judge = asking(mock.url)
        reply = await answered(judge, question())
        await judge.close()
    assert (reply.answer, reply.reason) == (None, "context_overflow")


# -- probabilities from a server's tokens


def by_tokens(wholes: Sequence[str], weights: Sequence[float], vocabulary: Sequence[str]) -> list[Step]:
    """The likeliest of `wholes` by a model that says each in the longest tokens of `vocabulary`, or letters."""
    spelled = []
    for whole in wholes:
        tokens, at = [], 0
        while at < len(whole):
            longest = max(
                (one for one in vocabulary if whole.startswith(one, at)), key=len, default=whole[at]
            )
            tokens.append(longest)
            at += len(longest)
        spelled.append(tokens)
    steps, given_tokens = [], []
    best = spelled[max(range(len(wholes)), key=weights.__getitem__)]
    for place, token in enumerate(best):
        masses: dict[str, float] = {}
        for tokens, weight in zip(spelled, weights, strict=True):
            if tokens[:place] == given_tokens and len(tokens) > place:
                masses[tokens[place]] = masses.get(tokens[place], 0.0) + weight
        steps.append(
            Step(token, {one: math.log(mass / sum(masses.values())) for one, mass in masses.items()})
        )
        given_tokens = [*given_tokens, token]
    return steps


@given(st.data())
def test_distribution_is_that_of_any_tokens(data: st.DataObject) -> None:
    pieces = st.text("ab1", min_size=1, max_size=4)
    values = data.draw(st.lists(pieces, min_size=2, max_size=6, unique=True))
    weights = data.draw(st.lists(st.floats(0.05, 1), min_size=len(values), max_size=len(values)))
    vocabulary = ['{"x":', ' "', *data.draw(st.lists(pieces, max_size=6, unique=True))]
    labels = Labels('{"x":"', tuple(values), '"}', None)

    async def spoken(some: tuple[int, ...]) -> list[Step]:
        wholes = [f'{{"x": "{values[place]}"}}' for place in some]
        return by_tokens(wholes, [weights[place] for place in some], vocabulary)

    found = asyncio.run(spoken_distribution(labels, spoken))
    assert found == pytest.approx([weight / sum(weights) for weight in weights], abs=2e-3)
    assert sum(found) == pytest.approx(1)


def test_token_that_begins_another_keeps_its_own_labels() -> None:
    """`1` and `10` are both tokens, and so is what they follow together with the first digit, which nobody says."""
    shown = [
        Step('{"x":', {'{"x":': -0.01, '{"x":1': -5.0}),
        Step("10", {"10": math.log(0.5), "1": math.log(0.3), "2": math.log(0.2)}),
    ]
    of_the_rest = [Step('{"x":', {'{"x":': 0.0}), Step("1", {"1": 0.0}), Step("}", {"}": -0.5, ".5": -1.0})]

    async def spoken(some: tuple[int, ...]) -> list[Step]:
        return shown if len(some) == 4 else of_the_rest

    labels = Labels('{"x":', ("1", "1.5", "10", "2"), "}", (1.0, 1.5, 10.0, 2.0))
    one, half, ten, two = asyncio.run(spoken_distribution(labels, spoken))
    assert ten == pytest.approx(0.5, abs=0.01) and two == pytest.approx(0.2, abs=0.01)
    assert one / half == pytest.approx(math.exp(0.5)) and one + half == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize(
    "steps",
    [[], [Step('{"x":', {'{"x":': 0.0})], [Step("What", {"What": 0.0})], [Step('{"x":"yes', {})]],
    ids=["nothing", "no label", "prose", "no alternatives"],
)
def test_reply_that_decides_nothing_has_no_distribution(steps: list[Step]) -> None:
    async def spoken(some: tuple[int, ...]) -> list[Step]:
        return steps

    with pytest.raises(NoProbabilities):
        asyncio.run(spoken_distribution(Labels('{"x":"', ("yes", "no"), '"}', None), spoken))


def test_reply_with_tokens_without_end_is_read_to_a_limit() -> None:
    likely = {f" {number}": -9.0 for number in range(1_000)} | {" ": -9.0}
    told = msgspec.json.decode(completion("{}").body)
    told["choices"][0]["logprobs"] = places([Step(" ", likely)] * 2_000)
    steps = read(msgspec.json.encode(told)).steps
    assert len(steps) == 500 and {len(step.likely) for step in steps} == {21}


def test_tokens_seen_are_those_of_one_kind_of_answer() -> None:
    seen = TokensSeen()
    for tokens in range(1, 201):
        seen.take(question(), Reply(answer=Points(points=1.0), usage=Usage(9, 0, tokens)))
    seen.take(question(), Reply(reason="answer_truncated", usage=Usage(9, 0, 9_000)))
    assert seen.budget(question(), 1_000) == 199 and seen.budget(question(), 50) == 50
    assert seen.mean(question(), 1.0) == 100.5
    other = ListOf(context=Context.of(report="x"))
    assert (seen.budget(other, 1_000), seen.mean(other, 7.0)) == (1_000, 7.0)


# -- keys and names


@pytest.mark.parametrize("judge", [SERVER, {"backend": "vllm", "model": "org/model", "revision": "1"}])
def test_identity_of_a_fast_judge_is_its_own(judge: dict[str, Any]) -> None:
    raw_config = {"tasks": "t", "protocols": ["rubrics"]}
    book = PromptBook()
    exact, fast = (
        make_judge(RunConfig.of({**raw_config, "judge": one}).judge_of("rubrics"), book).identity
        for one in (judge, {**judge, "profile": "fast"})
    )
    assert fast.sampling == f"{exact.sampling} profile=fast" and "profile" not in exact.sampling
    assert fast.fingerprint == exact.fingerprint


def test_metrics_of_a_fast_judge_have_their_own_names() -> None:
    def named(judge: object) -> str:
        config = RunConfig.of({"tasks": "t", "protocols": ["rubrics"], "judge": judge})
        return config.resolved.protocols[0].metrics[0].name

    fast = {**SERVER, "profile": "fast"}
    assert (named(SERVER), named(fast)) == ("score", "fast.score")
    assert named({"backend": "panel", "members": [SERVER, {**fast, "model": "other"}]}) == "fast.score"


async def test_runs_of_both_profiles_share_no_answer(tmp_path, capsys) -> None:
    async with Telling() as mock:
        judge = {**SERVER, "url": mock.url}
        for profile in ("exact", "fast"):
            config = world(tmp_path, judge={**judge, "profile": profile}, judge_check="off")
            folder = tmp_path / profile
            code, out, _ = await asyncio.to_thread(run, capsys, "evaluate", config, "--out", folder)
            assert code == 0 and "200 asked" in out
        code, out, _ = await asyncio.to_thread(run, capsys, "evaluate", config, "--out", tmp_path / "again")
        assert code == 0 and "0 asked, 200 from the store" in out
    record = json.loads((tmp_path / "fast" / "run.json").read_text())
    assert record["judge"]["sampling"].endswith(" profile=fast") and record["judge"]["profile"] == "fast"
    board = (tmp_path / "fast" / "leaderboard.html").read_text()
    assert "profile=fast" in board and "fast.score" in board
    code, out, _ = await asyncio.to_thread(
        run, capsys, "show", tmp_path / "fast", "--task", "0", "--system", "system0"
    )
    assert code == 0


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ({"backend": "lexical"}, "the lexical judge has none"),
        ({"backend": "panel", "members": [SERVER, "lexical"]}, "set it for members"),
        ({**SERVER, "thinking": True}, "leave thinking out"),
        ({"backend": "vllm", "model": "m", "scoring": "expected"}, "leave scoring out"),
        ({**SERVER, "stream": True}, "leave stream out"),
        ({**SERVER, "omit": ["response_format"]}, "take response_format out of omit"),
    ],
)
def test_judge_without_a_fast_profile_is_an_error(judge: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=rf"judge.*profile: fast: .*{said}"):
        RunConfig.of({"tasks": "t", "judge": {**judge, "profile": "fast"}})
    with pytest.raises(ConfigError, match="'quick' is unknown; use 'exact' or 'fast'"):
        RunConfig.of({"tasks": "t", "judge": {**SERVER, "profile": "quick"}})


# -- plan


def test_plan_has_hours_for_both_profiles(tmp_path, capsys) -> None:
    speeds = {
        "prompt_tokens_per_second": 26_000,
        "completion_tokens_per_second": 2_000,
        "cost_per_million_prompt_tokens": 1,
        "cost_per_million_completion_tokens": 4,
    }
    judge = {**SERVER, "max_context": 30_000}
    exact = plan(RunConfig.load(world(tmp_path, judge=judge, prices={"mock": speeds})))
    file = world(tmp_path, judge={**judge, "profile": "fast"}, prices={"mock": speeds})
    fast = plan(RunConfig.load(file))
    assert [one.name for one in exact.profiles] == [one.name for one in fast.profiles] == ["exact", "fast"]
    for found, chosen in ((exact, "exact"), (fast, "fast")):
        (own,) = (one for one in found.profiles if one.is_chosen)
        assert own.name == chosen and own.to_ask == sum(found.questions.values()) - found.stored
        assert (own.completion_tokens, own.seconds) == (found.completion_tokens, found.seconds)
        assert own.cost == found.cost and own.shared_tokens == found.shared_tokens
    bare = [msgspec.structs.replace(one, is_chosen=False) for one in exact.profiles]
    assert bare == [msgspec.structs.replace(one, is_chosen=False) for one in fast.profiles]
    slow, quick = bare
    assert slow.seconds is not None and quick.seconds is not None and quick.seconds < slow.seconds
    assert quick.completion_tokens < slow.completion_tokens / 5
    code, out, _ = run(capsys, "plan", file)
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines()]
    named = {row[0]: row for row in rows if len(row) == 6}
    assert code == 0 and named.keys() == {"exact", "fast (this run)"}
    assert named["exact"][1:4] == [
        f"{n:,}" for n in (slow.to_ask, slow.prompt_tokens, slow.completion_tokens)
    ]


def test_plan_without_a_choice_has_no_profiles(tmp_path, capsys) -> None:
    file = world(tmp_path)
    assert plan(RunConfig.load(file)).profiles == ()
    _, out, _ = run(capsys, "plan", file)
    assert "by profile" not in out


def test_plan_of_a_panel_counts_its_members(tmp_path) -> None:
    panel = {"backend": "panel", "members": [SERVER, {**SERVER, "model": "other"}]}
    exact, fast = plan(RunConfig.load(world(tmp_path, judge=panel))).profiles
    assert exact.is_chosen and not fast.is_chosen
