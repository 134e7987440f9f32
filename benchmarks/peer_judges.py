"""Peers that ask the same questions, in a separate environment (make peers); `benchmarks.peers` starts them.

    PEERS/bin/python -P benchmarks/peer_judges.py inspect_ai|processes|ray_data|deepeval URL FILE

FILE holds one JSON value per line: for deepeval a page with its statements, otherwise the body of a chat completion.
For each line on standard input the program does all the work and prints one JSON object: the peer's version, seconds,
client CPU seconds and the number of answers. Imports, connections and a first small piece of work are not timed.
"""

import contextlib
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import openai

LIMIT = 256
PROCESSES = 10
WARM = 20
NOBODY = "none"  # the key that clients insist on; the mock asks for none

Outcome = tuple[int, float]
"""How many were answered, and the CPU seconds of other processes."""
Work = Callable[[list[Any]], Outcome]

_client: openai.OpenAI  # of each process of the pool


def inspect_ai(url: str) -> Work:
    """An eval of samples with given answers, scored by `model_graded_qa`: one call per sample, all in its log.

    The additional log for viewers of a run in progress (`log_realtime`) is off, because it takes more time.
    """
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import GenerateConfig, ModelOutput, get_model
    from inspect_ai.scorer import accuracy, model_graded_qa, value_to_float
    from inspect_ai.solver import Generate, Solver, TaskState, solver

    @solver
    def given() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state.output = ModelOutput.from_content("given", "see the question")
            return state

        return solve

    to_float = value_to_float(correct="supported", incorrect="unsupported", partial="unknown")

    def work(bodies: list[Any]) -> Outcome:
        config = GenerateConfig(
            max_connections=LIMIT,
            max_tokens=bodies[0]["max_tokens"],
            temperature=bodies[0]["temperature"],
            seed=bodies[0]["seed"],
            extra_body={"response_format": bodies[0]["response_format"]},
        )
        grader = get_model("openai-api/mock/mock", base_url=url, api_key=NOBODY, config=config)
        texts = ["\n\n".join(message["content"] for message in body["messages"]) for body in bodies]
        task = Task(
            dataset=MemoryDataset([Sample(input=text, target="supported") for text in texts]),
            solver=given(),
            scorer=model_graded_qa(
                template="{question}", grade_pattern=r'"verdict":\s*"(\w+)"', model=grader
            ),
            metrics=[accuracy(to_float)],
        )
        (log,) = eval(
            task,
            model=None,
            display="none",
            log_dir="logs",
            max_samples=LIMIT,
            log_realtime=False,
            fail_on_error=False,
        )
        scores = log.results.scores if log.results else []
        return sum(score.scored_samples or 0 for score in scores), 0.0

    return work


def processes(url: str) -> Work:
    """The way of the DeepResearch Bench reference pipeline: a pool of processes, each with a blocking client."""
    context = multiprocessing.get_context("spawn")
    pool = context.Pool(PROCESSES, _connect, (url, context.Barrier(PROCESSES)))

    def work(bodies: list[Any]) -> Outcome:
        spent = [seconds for seconds in pool.map(_ask, bodies, chunksize=1) if seconds is not None]
        return len(spent), sum(spent)

    return work


def _connect(url: str, together: Barrier) -> None:
    global _client
    _client = openai.OpenAI(base_url=url, api_key=NOBODY)
    together.wait()  # none begins before all have begun


def _ask(body: dict[str, Any]) -> float | None:
    """The CPU seconds of a call; None if it failed."""
    began = time.process_time()
    try:
        reply = _client.chat.completions.create(**body)
    except openai.OpenAIError:
        return None
    return time.process_time() - began if reply.choices[0].message.content else None


def ray_data(url: str) -> Work:
    """Ray Data LLM's processor for HTTP servers, on an actor a core, each with its share of the requests at once.

    The requests of a batch are awaited one after another, and an actor has four batches at work: left so, 2,000 take
    minutes. Hence batches of one request, and more of them at once. Actors that claimed whole cores would leave none
    to prepare what is asked. Each run starts its own, which counts.
    """
    actors = os.cpu_count() or 1
    os.environ["RAY_DATA_DEFAULT_ASYNC_BATCH_UDF_MAX_CONCURRENCY"] = str(LIMIT // actors)
    import ray
    from ray.data.llm import HttpRequestProcessorConfig, build_processor

    ray.init(include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False

    def work(bodies: list[Any]) -> Outcome:
        config = HttpRequestProcessorConfig(
            url=f"{url}/chat/completions",
            batch_size=1,
            concurrency=actors,
            http_request_stage={"num_cpus": 0.5},
        )
        processor = build_processor(
            config,
            preprocess=lambda row: {"payload": json.loads(row["body"])},
            postprocess=lambda row: {"said": row["http_response"]["choices"][0]["message"]["content"]},
        )
        asked = ray.data.from_items(
            [{"body": json.dumps(body)} for body in bodies], override_num_blocks=actors
        )
        before = _children_cpu()
        said = processor(asked).take_all()
        return sum(bool(row["said"]) for row in said), _children_cpu() - before

    return work


def _children_cpu() -> float:
    """CPU seconds of all processes under this one that are still there, and of those that they waited for."""
    me, spent = os.getpid(), 0.0
    parents: dict[int, int] = {}
    ticks: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            process = int(stat.parent.name)
            parents[process], ticks[process] = int(fields[1]), sum(map(float, fields[11:15]))
    for process, used in ticks.items():
        above = parents[process]
        while above in parents and above != me:
            above = parents[above]
        spent += used / os.sysconf("SC_CLK_TCK") if above == me else 0.0
    return spent


def deepeval(url: str) -> Work:
    """`FaithfulnessMetric` without its reason: a page's truths and a report's claims are called for, then verdicts."""
    from deepeval import evaluate
    from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
    from deepeval.metrics import FaithfulnessMetric
    from deepeval.models import DeepEvalBaseLLM
    from deepeval.test_case import LLMTestCase

    formats: dict[tuple[str, int], Any] = {}

    class Judge(DeepEvalBaseLLM):  # type: ignore[misc]
        """The mock, constrained to as many claims and verdicts as there are statements."""

        def __init__(self, statements: int) -> None:
            self._statements = statements
            super().__init__("mock")

        def load_model(self) -> openai.AsyncOpenAI:
            return openai.AsyncOpenAI(base_url=url, api_key=NOBODY)

        def get_model_name(self) -> str:
            return "mock"

        def generate(self, prompt: str, schema: Any) -> Any:
            raise NotImplementedError("all is asked asynchronously")

        async def a_generate(self, prompt: str, schema: Any) -> Any:
            key = schema.__name__, self._statements
            if key not in formats:
                described = {"name": key[0], "schema": _bounded(schema.model_json_schema(), key[1])}
                formats[key] = {"type": "json_schema", "json_schema": described}
            reply = await self.model.chat.completions.create(
                model="mock", messages=[{"role": "user", "content": prompt}], response_format=formats[key]
            )
            return schema.model_validate_json(reply.choices[0].message.content)

    def work(pages: list[Any]) -> Outcome:
        statements = len(pages[0]["statements"])
        cases = [
            LLMTestCase(
                input="Is it so?",
                actual_output="\n".join(page["statements"]),
                retrieval_context=[page["page"]],
            )
            for page in pages
        ]
        found = evaluate(
            cases,
            [FaithfulnessMetric(model=Judge(statements), include_reason=False)],
            async_config=AsyncConfig(max_concurrent=LIMIT),
            display_config=DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False),
            cache_config=CacheConfig(write_cache=False),
            error_config=ErrorConfig(ignore_errors=True),
        )
        metrics = [metric for one in found.test_results for metric in one.metrics_data or []]
        return statements * sum(metric.score is not None for metric in metrics), 0.0

    return work


def _bounded(schema: dict[str, Any], count: int) -> dict[str, Any]:
    """`schema` without references, with `count` items in every list and at most 300 characters in every text."""

    def bounded(part: dict[str, Any]) -> dict[str, Any]:
        if "$ref" in part:
            return bounded(schema["$defs"][part["$ref"].rpartition("/")[2]])
        if "anyOf" in part:
            return {"anyOf": [bounded(one) for one in part["anyOf"]]}
        if part.get("type") == "array":
            return {"type": "array", "minItems": count, "maxItems": count, "items": bounded(part["items"])}
        if part.get("type") == "object":
            properties = {name: bounded(one) for name, one in part["properties"].items()}
            return {"type": "object", "properties": properties, "required": list(properties)}
        return part if part.get("type") != "string" or "enum" in part else {**part, "maxLength": 300}

    return bounded(schema)


def main() -> None:
    name, url, file = sys.argv[1:]
    peer, package = {
        "inspect_ai": (inspect_ai, "inspect-ai"),
        "processes": (processes, "openai"),
        "ray_data": (ray_data, "ray"),
        "deepeval": (deepeval, "deepeval"),
    }[name]
    asked = [json.loads(line) for line in Path(file).read_bytes().splitlines()]
    with contextlib.redirect_stdout(sys.stderr):
        work = peer(url)
        work(asked[:WARM])
    while sys.stdin.readline():
        with contextlib.redirect_stdout(sys.stderr):
            cpu, wall = time.process_time(), time.perf_counter()
            answered, elsewhere = work(asked)
            seconds, cpu = time.perf_counter() - wall, time.process_time() - cpu + elsewhere
        found = {"version": version(package), "seconds": seconds, "cpu": cpu, "answered": answered}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
