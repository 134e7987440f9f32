"""Long texts are read in worker processes: the loop stays free, what is late or dies is not the report's doing."""

import ast
import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

from adjudge.engine.config.reward import Length
from adjudge.engine.rewards.flags import FLAGS, Said, flags_of
from adjudge.fetchers.process import ADDRESS_SPACE, AT_HAND, Budget, PoolError, WorkerPool
from adjudge.scoring.contract.case import Case, Citation, Report, Task
from adjudge.scoring.contract.protocol import score_case
from adjudge.scoring.deepresearch_bench.fact import Fact
from adjudge.scoring.text.aside import IN_PLACE_BYTES, Answer, Call, aside, open_workers, storable, when_idle
from adjudge.scoring.text.citations import parse
from tests.growth import hostile
from tests.libraries import FILES, HEAVY

ROOT = Path(__file__).parents[1]
# Who reads a whole report, page or reference, and by which functions.
BESIDE_THE_LOOP = {
    "engine/evaluation/evaluator.py": {"looks_of"},
    "engine/viewer/labelling.py": {"marked_text", "nearest"},
    "engine/rewards/rollout.py": {"flags_of"},
    "engine/viewer/pages/marked_report.py": {"said_at", "marked_text"},
    "engine/viewer/pages/report.py": {"nearest"},
    "scoring/deepresearch_bench/fact.py": {"read_citations", "uncited_of"},
    "scoring/deepresearch_bench/fact_questions.py": {"near_addresses", "parse", "without_lists"},
    "scoring/deepresearch_bench/race.py": {"clean_beside", "clean_report"},
    "scoring/dr3_eval/questions.py": {"chunks_for"},
    "scoring/dr3_eval/published_facts.py": {"best_passages", "found_sources"},
    "scoring/dr3_eval/sandbox.py": {"covered", "read_cited"},
    "scoring/drmi_bench/drmi.py": {"parse"},
    "scoring/rubrics/drb2.py": {"traces"},
    "scoring/rubrics/rigorous.py": {"clean_report", "cited_urls", "annotated"},
    "scoring/text/cleaning.py": {"without_lists"},
}
ON_THE_LOOP = {
    ("engine/rewards/rollout.py", "flags_of"),  # of a report that is too long, which is not read
    ("scoring/text/cleaning.py", "clean_report"),  # of a piece
}
LONG = hostile(("It grew by 3% in the year [1]. ", "国家发展很快【2】。"), 60_000, listed=True)


@pytest.fixture(autouse=True)
def functions_of_this_module(monkeypatch) -> None:
    """Let a worker process import them."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


async def test_numbers_beyond_64_bits_are_read_elsewhere_too() -> None:
    """A footnote may be called by a number that no message holds; its place in the list stands for it."""
    note = "9" * 24
    text = f"Alpha has grown [^{note}].\n\n{LONG}\n\n## References\n[^{note}]: Nine. https://n.example\n"
    handed = (Citation(url="https://m.example", marker=f"[^{note[1:]}]"),)
    async with open_workers():
        found = await aside(parse, text, handed)
    assert found == parse(text, handed) and "https://n.example" in [one.url for one in found.references]
    assert max(one.ref_idx for one in found.triplets) < 2**63


def pid_of(text: str) -> int:
    """The process that reads `text`."""
    return os.getpid()


def moment_of(text: str) -> float:
    return time.monotonic()


def sleep_over(text: str) -> int:
    """Read for ever."""
    time.sleep(600)
    return 0


def die_of(text: str) -> int:
    """Take the process along."""
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def test_long_text_is_read_elsewhere_with_the_same_result() -> None:
    async def read() -> None:
        here = os.getpid()
        assert await aside(pid_of, LONG) == here  # nothing is open
        async with open_workers():
            assert await aside(pid_of, "short") == here
            assert await aside(pid_of, LONG) != here
            assert await aside(parse, LONG) == parse(LONG)
            limits = Length(max=500_000)
            assert await aside(flags_of, Said(LONG), limits, set(FLAGS)) == flags_of(
                Said(LONG), limits, FLAGS
            )
            async with open_workers():
                pass
            assert await aside(pid_of, LONG) != here  # the outer user still has them
        assert await aside(pid_of, LONG) == here

    asyncio.run(read())


@pytest.mark.parametrize(("cores", "workers"), [(0.5, 1), (1, 1), (2, 1), (2.5, 2), (4, 3)])
async def test_a_process_reads_in_no_more_workers_than_it_has_cores(cores: float, workers: int) -> None:
    """One core is the loop's: many evaluators on a machine start few workers each."""
    async with open_workers(cores):
        read = await asyncio.gather(*(aside(pid_of, f"{LONG}{n}") for n in range(12)))
        async with open_workers(64):  # the first to open them decides
            read += await asyncio.gather(*(aside(pid_of, f"{LONG}{n}") for n in range(12)))
    assert len(set(read)) == workers


async def test_those_who_wait_for_a_worker_are_told_that_none_starts() -> None:
    pool = WorkerPool(1, Answer, "adjudge.no_such_module")
    found = await asyncio.gather(*(pool.answer(b"x", Budget(5.0)) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in found] == [PoolError] * 3
    with pytest.raises(PoolError):
        await pool.answer(b"x", Budget(5.0))
    await pool.close()


async def test_one_reader_is_given_up_and_others_are_read() -> None:
    """By whoever waits, before or after it has begun, and whatever comes next is read by another process."""
    async with open_workers(1):
        first = await aside(pid_of, LONG)
        at_work = asyncio.create_task(aside(sleep_over, LONG))
        waiting = [asyncio.create_task(aside(pid_of, f"{LONG}{n}")) for n in range(3)]
        await asyncio.sleep(0.2)
        waiting[0].cancel()
        at_work.cancel()
        found = await asyncio.gather(at_work, *waiting, return_exceptions=True)
        assert [type(one) for one in found] == [asyncio.CancelledError] * 2 + [int, int]
        assert found[2] == found[3] != first
        assert await aside(pid_of, LONG) == found[2]


async def test_what_a_worker_has_at_hand_is_not_lost_with_it() -> None:
    """One is ended while it has one job at work and one at hand; a pool that closes leaves nobody waiting."""
    pool = WorkerPool(1, Answer, "adjudge.scoring.text.worker", str(ADDRESS_SPACE))

    def call(function: Callable[[str], object]) -> bytes:
        said = msgspec.msgpack.encode((LONG,))
        return msgspec.msgpack.encode(Call(__name__, function.__name__, msgspec.Raw(said), 30.0))

    late = asyncio.create_task(pool.answer(call(sleep_over), Budget(0.5)))
    behind = [asyncio.create_task(pool.answer(call(pid_of), Budget(30.0))) for _ in range(2)]
    with pytest.raises(TimeoutError):
        await late
    found = await asyncio.gather(*behind)
    assert all(found)
    dead = asyncio.create_task(pool.answer(call(die_of), Budget(5.0)))
    found = await asyncio.gather(dead, *(pool.answer(call(pid_of), Budget(30.0)) for _ in range(2)))
    assert found[0] is None and all(found[1:])
    waiting = [asyncio.create_task(pool.answer(call(sleep_over), Budget(30.0))) for _ in range(3)]
    await asyncio.sleep(0.1)
    await pool.close()
    assert await asyncio.wait_for(asyncio.gather(*waiting), 10) == [None] * 3


async def test_what_no_judge_waits_for_is_read_when_a_worker_is_idle() -> None:
    async with open_workers(1):
        await aside(pid_of, LONG)
        late = [asyncio.create_task(when_idle(moment_of, f"{LONG}{n}")) for n in range(20)]
        await asyncio.sleep(0)
        soon = [asyncio.create_task(aside(moment_of, f"{LONG}{n}")) for n in range(20, 30)]
        last = max(await asyncio.gather(*soon))
        assert sum(moment < last for moment in await asyncio.gather(*late)) <= AT_HAND


async def test_a_worker_is_not_idle_while_the_loop_is_busy() -> None:
    async with open_workers(1):
        await aside(pid_of, LONG)
        text = LONG[: 2 * IN_PLACE_BYTES]  # which a pipe holds
        read = [asyncio.create_task(aside(moment_of, f"{text}{n}")) for n in range(2)]
        await asyncio.wait(read, return_when=asyncio.FIRST_COMPLETED)
        time.sleep(3.0)  # the loop is busy
        first, second = sorted(await asyncio.gather(*read))
        assert second - first < 2.0


def test_a_text_with_lone_surrogates_is_read_like_any_other() -> None:
    async def read() -> None:
        async with open_workers():
            text = f"\ud800{LONG}"
            assert await aside(parse, storable(text)) == parse(text)

    asyncio.run(read())


@pytest.mark.parametrize(
    ("function", "seconds", "reason"), [(sleep_over, 4.0, "deadline"), (die_of, 60.0, "worker_died")]
)
def test_a_reader_that_is_late_or_dies_is_not_the_reports_doing(
    function, seconds, reason, monkeypatch
) -> None:

    class Reading(Fact, frozen=True, kw_only=True):
        async def score(self, case, tools):
            await aside(function, case.report.text)

    async def score():
        report = Report(task_id="1", system="a", text=LONG)
        case = Case(task=Task(id="1", prompt="p"), report=report)
        async with open_workers():
            await aside(pid_of, LONG)  # a worker takes its time to start
            with monkeypatch.context() as patience:
                patience.setattr("adjudge.scoring.text.aside.SECONDS", seconds)
                card = await score_case(Reading(), case, None)
            assert await aside(pid_of, LONG) != os.getpid()  # and the next one is read
        return card

    card = asyncio.run(score())
    assert card.status == "unscored" and card.reasons["c_acc"] == reason
    assert all(value is None for value in card.scores.values())


def test_the_loop_runs_on_while_the_longest_report_is_read() -> None:
    async def read() -> tuple[int, bool]:
        turns = 0
        async with open_workers():
            reading = asyncio.ensure_future(aside(sleep_over, LONG))
            for _ in range(100):
                await asyncio.sleep(0)
                turns += 1
            busy = not reading.done()
            reading.cancel()  # as the first Ctrl-C does
            with pytest.raises(asyncio.CancelledError):
                await reading
        return turns, busy

    assert asyncio.run(read()) == (100, True)


def calls_in_coroutines(path: Path) -> set[tuple[str, str]]:
    """Functions that the coroutines in `path` call by name, each with its first argument."""
    found = ast.walk(ast.parse(path.read_text()))
    inside = [node for each in found if isinstance(each, ast.AsyncFunctionDef) for node in ast.walk(each)]
    calls = [node for node in inside if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return {(ast.unparse(call.func), ast.unparse(call.args[0]) if call.args else "") for call in calls}


def test_whole_texts_are_read_beside_the_loop_everywhere() -> None:
    beside: dict[str, set[str]] = {}
    on_the_loop = set()
    readers = set().union(*BESIDE_THE_LOOP.values())
    for path in (path for folder in ("engine", "scoring") for path in (ROOT / folder).rglob("*.py")):
        for function, argument in calls_in_coroutines(path):
            name = str(path.relative_to(ROOT))
            if function in ("aside", "when_idle"):
                beside.setdefault(name, set()).add(argument)
            elif function in readers:
                on_the_loop.add((name, function))
    assert beside == BESIDE_THE_LOOP and on_the_loop == ON_THE_LOOP


def test_workers_import_no_library_but_what_reads_the_text() -> None:
    """A worker that imported the viewer's server would start in half a second and hold 100 MB."""
    modules = set()
    for path, names in BESIDE_THE_LOOP.items():
        caller = import_module(f"adjudge.{path.removesuffix('.py').replace('/', '.')}")
        modules |= {getattr(caller, name).__module__ for name in names}
    said = "print(*{name.partition('.')[0] for name in sys.modules})"
    command = f"import sys, {', '.join(sorted(modules))}; {said}"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & (HEAVY | FILES) == {"markdown_it"}


def test_arguments_are_measured_in_bytes() -> None:
    async def read() -> None:
        async with open_workers():
            assert await aside(pid_of, "国" * (IN_PLACE_BYTES // 3 + 1)) != os.getpid()

    asyncio.run(read())
