"""Following a run: its figures, the stream of events with its limits, and the viewer beside `evaluate`."""

import asyncio
import json
import os
import signal
from pathlib import Path

import aiohttp
import msgspec
import pyarrow as pa
import pytest

from adjudge.engine.runs.pulse import Reading
from adjudge.engine.store import Place, ScorecardStore
from adjudge.engine.store.scorecards import Arrivals, score_table
from adjudge.engine.store.upkeep import compact
from adjudge.engine.viewer import app
from adjudge.engine.viewer.data.following import Counts, Failed, Pace, Placed, Snapshot, Standing, Tally
from adjudge.engine.viewer.pages.live import live_view
from adjudge.scoring.contract.scorecard import Scorecard
from tests.slow_run import slow_run
from tests.viewing import TAGS, viewing


def card(task: str, value: float | None = 1.0, rival: str = "") -> Scorecard:
    return Scorecard(
        protocol="race",
        system="a",
        task_id=task,
        sample=0,
        repeat=0,
        scores={"overall": value, "depth": 0.5},
        status="scored" if value is not None else "unscored",
        reason=None if value is not None else "judge_timeout",
        reasons={} if value is not None else {"overall": "judge_timeout"},
        rival=rival,
    )


async def put(place: Place, run: str, *cards: Scorecard) -> None:
    store = ScorecardStore(place, run)
    await store.open()
    for one in cards:
        store.put(one, 1)
    await store.close()


async def test_arrivals_are_read_once_and_are_the_table_in_the_end(tmp_path, monkeypatch):
    place = Place.of(str(tmp_path))
    await put(place, "mine", card("1"))
    arrivals = Arrivals(place, "mine", 0.0)
    assert len(arrivals.take_in()) == 2 and len(arrivals.take_in()) == 0
    await put(place, "other", card("1"))
    await put(place, "mine", card("2", None), card("3", rival="b"))
    opened = []
    real = Place.open
    monkeypatch.setattr(Place, "open", lambda self, name: opened.append(name) or real(self, name))
    fresh = arrivals.take_in()
    assert len(fresh) == 4 and len(opened) == 2, "old parts are not opened again"
    assert sorted(map(str, arrivals.rows.to_pylist())) == sorted(
        map(str, score_table(place, "mine").to_pylist())
    )


async def test_parts_from_before_the_run_are_not_opened(tmp_path):
    place = Place.of(str(tmp_path))
    await put(place, "mine", card("1"))
    assert len(Arrivals(place, "mine", 4e9).take_in()) == 0


async def test_rewritten_parts_are_not_counted_twice(tmp_path):
    place = Place.of(str(tmp_path))
    await put(place, "mine", card("1"))
    await put(place, "mine", card("2"))
    arrivals = Arrivals(place, "mine", 0.0)
    arrivals.take_in()
    compact(place)
    await put(place, "mine", card("3"))
    assert arrivals.take_in() is None and len(arrivals.rows) == 6
    assert len(arrivals.take_in()) == 0


def test_counts_say_what_lacks_scores():
    rows = [
        {"protocol": "p", "system": system, "task_id": task, "sample": 0, "repeat": 0, "metric": metric,
         "value": value, "reason": None if value is not None else "judge_timeout"}
        for system, task, values in (("a", "1", (1.0, None)), ("a", "2", (1.0, 1.0)), ("b", "1", (None, None)))
        for metric, value in zip("mn", values, strict=True)
    ]  # fmt: skip
    counts = Counts()
    counts.add(pa.Table.from_pylist(rows))
    assert (counts.done, counts.unscored) == (3, 2)
    assert counts.cards == {("p", "a"): 2, ("p", "b"): 1}
    assert counts.failed == {("p", "judge_timeout"): 2}


def test_pace_is_of_the_last_minute():
    pace = Pace(0.0)
    assert pace.at(100.0, 10, 5.0) == (0.1, 0.5)
    assert pace.at(130.0, 40, 20.0) == (40 / 130, 0.5)
    rate, cost = pace.at(170.0, 110, 160.0)
    assert rate == pytest.approx(100 / 70) and cost == pytest.approx(155 / 100)
    assert Pace(0.0).at(1.0, 0, None) == (0.0, None)


def test_view_says_nothing_that_is_not_known():
    shown = live_view(Snapshot(run="r", state="running", said="still running"))
    assert {shown.figures[key] for key in ("rate", "left", "cost", "cost_left")} == {"-"}
    assert shown.share == 0.0 and shown.tables[0].rows == ()


def test_view_draws_intervals_between_the_ends_of_all():
    rows = (
        Placed("a", 1.0, 60.0, 50.0, 70.0),
        Placed("b", None, None, None, None),
        Placed("c", 2.0, 40.0, 30.0, 50.0),
    )
    now = Snapshot(
        run="r", state="stopped", said="stopped at noon: killed", done=5, due=10, tasks=9,
        tallies=(Tally("", "race", 5, 10), Tally("a", "race", 5, 0)),
        failures=(Failed("race", "judge_timeout", 2),), standings=(Standing("race", "overall", 3, rows),),
    )  # fmt: skip
    shown = live_view(now)
    progress, failures, standings = shown.tables
    assert [row[1].text for row in progress.rows] == ["5 of 10", "5"]
    assert failures.rows[0][0].text.startswith("race: judge_timeout (infrastructure)")
    assert [row[3].bar for row in standings.rows] == [(50.0, 75.0, 100.0), None, (0.0, 25.0, 50.0)]
    assert "3 of 9 tasks" in standings.note and "provisional" in standings.title


async def test_every_page_of_a_running_run_works(tmp_path):
    async with slow_run(tmp_path, systems=2, tasks=3, named=TAGS) as run:
        run.allow(45)
        await run.start()
        async with viewing(run.out) as viewer:
            while "4 of 9" not in (await viewer.get(""))[1]:
                await asyncio.sleep(0.5)
            pages = [
                path
                async for path, body, _ in viewer.crawl(skip="^leaderboard$")
                if "<script>alert" not in body
            ]
            assert len(pages) > 20
            assert any(path.startswith("report?") for path in pages)
            status, body, headers = await viewer.get("leaderboard")
            assert (
                status == 200 and "provisional" in body and "script-src" in headers["Content-Security-Policy"]
            )


async def events(viewer, most: int, **headers: str) -> list[dict]:
    """The data of the first events of a run."""
    found = []
    async with viewer.session.get(viewer.url + "events", headers=headers) as response:
        assert response.status == 200 and response.content_type == "text/event-stream"
        assert "script-src 'self'" in response.headers["Content-Security-Policy"]
        async for line in response.content:
            if line.startswith(b"data: "):
                found.append(json.loads(line.removeprefix(b"data: ")))
                if len(found) == most:
                    break
    return found


async def test_stream_has_figures_and_ends_with_the_run(tmp_path):
    async with slow_run(tmp_path, systems=1, tasks=2) as run:
        await run.start()
        async with viewing(run.out) as viewer:
            (first,) = await events(viewer, 1)
            assert first["state"] == "running" and first["figures"]["done"] == "0 of 2"
            following = asyncio.ensure_future(events(viewer, 1_000))
            await asyncio.sleep(1.5)
            run.allow(1_000)
            found = await following
            assert found[-1] == {} and len(found) < 200
            assert await events(viewer, 5) == [{}], "a run that has finished has nothing to say"


async def test_stream_is_for_few_pages_of_this_viewer(tmp_path, monkeypatch):
    monkeypatch.setattr(app, "STREAMS", 2)
    async with slow_run(tmp_path, systems=1, tasks=2) as run:
        await run.start()
        async with viewing(run.out) as viewer:
            status, _, _ = await viewer.get("events", headers={"Sec-Fetch-Site": "cross-site"})
            assert status == 403
            async with (
                viewer.session.get(viewer.url + "events") as first,
                viewer.session.get(viewer.url + "events"),
            ):
                status, body, _ = await viewer.get("events")
                assert status == 503 and "close some" in body
                status, _, _ = await viewer.get("")
                assert status == 200
                first.close()
                async with asyncio.timeout(20):
                    while (await head(viewer)) != 200:
                        await asyncio.sleep(0.1)


async def test_stream_outlives_changes_of_the_record(tmp_path):
    """A record that is written anew, or a process that dies, opens the run anew; who follows it sees no break."""
    async with slow_run(tmp_path, systems=1, tasks=3) as run:
        process = await run.start()
        async with viewing(run.out) as viewer:
            following = asyncio.ensure_future(events(viewer, 2))
            while not following.done():
                os.utime(run.out / "run.json")
                await asyncio.sleep(0.3)
                if process.returncode is None:
                    process.kill()
            assert [one["state"] for one in await following] == ["running", "stopped"]


async def head(viewer) -> int:
    """The status of a stream that is left at once."""
    async with viewer.session.get(viewer.url + "events") as response:
        return response.status


async def test_stopped_run_is_whole_and_its_stream_waits_for_more(tmp_path):
    async with slow_run(tmp_path, systems=1, tasks=3) as run:
        run.allow(15)
        process = await run.start()
        async with viewing(run.out) as viewer:
            while "1 of 3" not in (await viewer.get(""))[1]:
                await asyncio.sleep(0.2)
            process.kill()
            await process.wait()
            (found,) = await events(viewer, 1)
            assert found["state"] == "stopped" and "its process was killed" in found["figures"]["said"]
            assert found["figures"]["rate"] == "-"


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGINT])
async def test_viewer_beside_a_run_ends_with_it(tmp_path: Path, signum: int) -> None:
    async with slow_run(tmp_path, systems=1, tasks=2) as run:
        process = await run.start("--view")
        assert process.stderr is not None
        line = b""
        while not line.startswith(b"viewer: "):
            line = await process.stderr.readline()
        url = line.decode().split()[-1]
        async with aiohttp.ClientSession() as session:
            async with session.get(url) as response:
                assert response.status == 200
            process.send_signal(signum)
            await process.wait()
            async with asyncio.timeout(60):
                while await answers(session, url):
                    await asyncio.sleep(0.1)


async def answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url):
            return True
    except aiohttp.ClientError:
        return False


def test_reading_of_an_older_pulse_has_defaults():
    assert msgspec.json.decode(b"{}", type=Reading) == Reading()
