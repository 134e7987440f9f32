"""What could not be read of cited pages is said where ranks are shown: below the first of them on the page."""

import random

import pytest

from adjudge.engine.runs.run import Run
from adjudge.engine.runs.tallies import Unread, UnreadPages
from adjudge.scoring.contract.scorecard import Evidence, Outcome, Scorecard
from tests.commands import run
from tests.servers.base import Exchange, Server
from tests.servers.hostile import plain
from tests.worlds import lines, world


async def busy(to: Exchange) -> None:
    await to.reply(b"", "Retry-After: 3600", status="429 Too Many Requests")


def test_unread_pages_are_named_beside_the_ranks(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    with Server(routes={"/good": plain, "/busy": busy}) as server:
        allow = [server.address, f"localhost:{server.port}"]
        fetch = {"mode": "live", "allow": allow}
        config = world(tmp_path, systems=0, tasks=1, protocols=["fact"], fetch=fetch)
        paths = [
            ("/gone/b", "localhost"),
            ("/gone/a", "localhost"),
            ("/busy", "127.0.0.1"),
            ("/good", "localhost"),
        ]
        text = "\n\n".join(
            f"The committee found that the bridge number {n} was built in 1932 [page]({server.url(path, host=host)})."
            for n, (path, host) in enumerate(paths)
        )
        lines(tmp_path / "reports" / "reports.jsonl", [{"task_id": "0", "system": "wren", "text": text}])
        _, out, _ = run(capsys, "evaluate", config)
        gone, limited = server.url("/gone/a", host="localhost"), server.url("/busy", host="127.0.0.1")
    assert out.index("Pages that could not be read") < out.index("wren")
    made = Run.open(tmp_path / "run")
    expected = (
        Unread(host="localhost", reason="page_gone", pages=2, example=gone),
        Unread(host="127.0.0.1", reason="page_rate_limited", pages=1, example=limited),
    )
    assert made.record.unread == expected
    assert made.board is not None and made.board.unread == expected
    page = (tmp_path / "run" / "leaderboard.html").read_text()
    first, end = page.index('id="p0t0"'), page.index('class="figures"')
    assert first < page.index("Pages that could not be read: 3 pages") < end
    _, said, _ = run(capsys, "leaderboard", tmp_path / "run", "--markdown")
    assert said.index("Pages that could not be read") < said.index("wren")
    assert "run the same command again" in said and "page\\_gone" in said


def test_counts_do_not_depend_on_order_and_stay_small() -> None:
    outcome = Outcome("unsupported")
    rows = [
        Evidence(what="s", outcome=outcome, url=f"http://h{n % 300}.example/{n}", reason="page_gone")
        for n in range(1000)
    ]
    results = []
    for seed in (1, 2):
        random.Random(seed).shuffle(rows)
        counted = UnreadPages()
        for start in range(0, 1000, 50):
            counted.take(
                Scorecard(
                    protocol="fact",
                    system="a",
                    task_id="0",
                    sample=0,
                    repeat=0,
                    scores={},
                    status="scored",
                    evidence=tuple(rows[start : start + 50]),
                )
            )
        results.append(counted.result())
    assert results[0] == results[1]
    assert len(results[0]) == 201 and sum(one.pages for one in results[0]) == 1000
    assert results[0][-1].host == ""
