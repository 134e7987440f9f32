"""Work that several wait for: done once, ended when nobody waits, and its error is raised to those who wait."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from adjudge.fetchers.flight import SingleFlight, shared

Waiting = Callable[[Callable[[], Coroutine[Any, Any, None]]], Coroutine[Any, Any, None]]
TURNS = range(8)  # of the loop, before the waiting one leaves: the part fails in one of the first


async def in_flight(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    await SingleFlight[str, None]().do("key", work)


async def as_a_task(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    await shared(asyncio.ensure_future(work()))


async def work_that_fails() -> None:
    """One part fails while another has long to go, as when one member of a panel cannot be reached."""

    async def fail() -> None:
        raise ValueError("this part failed")

    await asyncio.gather(asyncio.sleep(9), fail())


async def leave(waiting: Coroutine[Any, Any, None], turns: int) -> None:
    task = asyncio.ensure_future(waiting)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    (found,) = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(found, asyncio.CancelledError | ValueError)
    for _ in TURNS:
        await asyncio.sleep(0)


@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("wait", [in_flight, as_a_task])
def test_error_that_nobody_waits_for_is_not_logged(wait: Waiting, turns: int) -> None:
    logged: list[dict[str, Any]] = []

    async def wait_and_leave() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))
        await leave(wait(work_that_fails), turns)
        gc.collect()  # asyncio logs when the task is freed

    asyncio.run(wait_and_leave())
    assert not logged


@pytest.mark.parametrize("wait", [in_flight, as_a_task])
async def test_error_is_raised_to_whoever_waits(wait: Waiting) -> None:
    with pytest.raises(ValueError, match="this part failed"):
        await wait(work_that_fails)


async def test_equal_work_is_done_once_and_ends_with_its_last_waiter() -> None:
    flights, begun, ended = SingleFlight[str, int](), 0, asyncio.Event()

    async def work() -> int:
        nonlocal begun
        begun += 1
        try:
            await asyncio.sleep(9)
        finally:
            ended.set()
        return 1

    first, last = (asyncio.ensure_future(flights.do("key", work)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait((first,))
    await asyncio.sleep(0)
    assert (begun, len(flights), "key" in flights, ended.is_set()) == (1, 1, True, False)
    last.cancel()
    await asyncio.wait((last,))
    await asyncio.wait_for(ended.wait(), 5)
    assert len(flights) == 0


async def test_shared_task_goes_on_without_the_one_who_waited() -> None:
    answer = asyncio.get_running_loop().create_future()
    first, last = (asyncio.ensure_future(shared(answer)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait((first,))
    answer.set_result(1)
    assert await last == 1 and first.cancelled()
