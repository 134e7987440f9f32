"""Results computed from the runs of two sides. The peers themselves run in `benchmarks.peers`."""

import json

import pytest

from benchmarks import peers
from benchmarks.peers import Run, Sides

SIDES = Sides(
    "other {}",
    100,
    ours=[Run(1.0, 0.2, 100), Run(2.0, 0.1, 100), Run(1.25, 0.3, 100)],
    theirs=[Run(10.0, 5.0, 100, "1.2"), Run(10.0, 4.0, 90, "1.2"), Run(16.0, 6.0, 80, "1.2")],
)


def test_rate_counts_only_answers_and_names_failures() -> None:
    row = SIDES.rate("things", "questions")
    assert (row.ours, row.peer, row.ratio) == (80.0, 9.0, pytest.approx(80 / 9))
    assert (row.unit, row.n, row.runs) == ("questions/s", 100, 3)
    assert row.peer_name == "other 1.2, 20 failed"


def test_cpu_time_is_milliseconds_per_item() -> None:
    row = SIDES.cpu("CPU")
    assert (row.ours, row.peer, row.ratio) == (2.0, 50.0, 25.0)


def test_failing_or_missing_peer_ends_the_benchmark(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(peers, "VENV", tmp_path)
    with pytest.raises(SystemExit, match="make peers"):
        peers.theirs("peer_judges", "inspect_ai", "http://127.0.0.1:1/v1", [])
    python = tmp_path / "bin/python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\necho no such module >&2\nexit 1\n")
    python.chmod(0o755)
    with pytest.raises(SystemExit, match="no such module"):
        peers.theirs("peer_judges", "inspect_ai", "http://127.0.0.1:1/v1", [])
    found = {"version": "1", "seconds": 1.0, "cpu": 0.5, "answered": 2}
    python.write_text(
        f"#!/bin/sh\nfor run in 1 2; do read go; echo '{json.dumps(found)}'; done\necho no more >&2\n"
    )
    with peers.started("peer_judges", "inspect_ai", "http://127.0.0.1:1/v1", []) as run:
        assert [run(), run()] == [Run(1.0, 0.5, 2, "1")] * 2
        with pytest.raises(SystemExit, match="no more"):
            run()
