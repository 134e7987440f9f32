"""The leaderboard's page as a file."""

from pathlib import Path

import pytest
from adjudge.engine.leaderboard import build_leaderboard
from adjudge.engine.leaderboard_files import write_leaderboard

from tests.made_runs import made_run


@pytest.mark.timeout(600)
def test_fifty_systems_and_a_thousand_tasks_are_under_three_megabytes(tmp_path: Path):
    systems = [f"research-system-{number:02d}-medium" for number in range(50)]
    folder = made_run(tmp_path, systems, 1_000)
    size = write_leaderboard(build_leaderboard([folder]), folder).stat().st_size
    assert 500_000 < size < 3_000_000
