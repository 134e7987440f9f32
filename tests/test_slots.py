import asyncio

from hypothesis import given
from hypothesis import strategies as st

from adjudge.judges.queue import Slots


async def test_slot_given_to_a_cancelled_waiter_is_passed_on() -> None:
    slots = Slots(1)
    await slots.acquire()
    waiting = asyncio.create_task(slots.acquire())
    await asyncio.sleep(0)
    slots.release()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled()
    async with asyncio.timeout(5):
        await slots.acquire()


async def test_cancelled_waiter_is_skipped() -> None:
    slots = Slots(1)
    await slots.acquire()
    first, second = (asyncio.create_task(slots.acquire()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    slots.release()
    async with asyncio.timeout(5):
        await second


async def test_resize_takes_freed_slots_and_hands_out_new_ones() -> None:
    slots = Slots(2)
    await slots.acquire()
    await slots.acquire()
    waiting = asyncio.create_task(slots.acquire())
    await asyncio.sleep(0)
    slots.resize(1)
    assert slots.in_use == 2
    slots.release()
    await asyncio.sleep(0)
    assert slots.in_use == 1 and not waiting.done()
    slots.resize(2)
    async with asyncio.timeout(5):
        await waiting
    assert slots.in_use == 2


Visit = st.tuples(
    st.integers(0, 3), st.integers(0, 3), st.integers(0, 12)
)  # priority, turns inside, cancelled at


@given(st.integers(1, 3), st.lists(Visit, max_size=12))
def test_slots_are_never_exceeded_or_lost(total: int, visits: list[tuple[int, int, int]]) -> None:
    inside, peak = 0, 0

    async def visit(slots: Slots, priority: int, turns: int) -> None:
        nonlocal inside, peak
        await slots.acquire(priority)
        try:
            inside += 1
            peak = max(peak, inside)
            for _ in range(turns):
                await asyncio.sleep(0)
        finally:
            inside -= 1
            slots.release()

    async def run() -> None:
        slots = Slots(total)
        tasks = [asyncio.create_task(visit(slots, priority, turns)) for priority, turns, _ in visits]
        for step in range(13):
            for task, (_, _, cancelled_at) in zip(tasks, visits, strict=True):
                if cancelled_at == step:
                    task.cancel()
            await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await asyncio.gather(*tasks, return_exceptions=True)
            for _ in range(total):
                await slots.acquire()

    asyncio.run(run())
    assert peak == min(peak, total)
