"""The leaderboard's page as a file."""

import json
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.tables.files import write_leaderboard
from tests.boards import tables, unequal
from tests.commands import run
from tests.made_runs import made_run


@pytest.mark.timeout(600)
def test_page_of_50_systems_and_1000_tasks_is_under_3_mb(tmp_path: Path):
    systems = [f"research-system-{number:02d}-medium" for number in range(50)]
    folder = made_run(tmp_path, systems, 1_000)
    size = write_leaderboard(build_leaderboard([folder]), folder).stat().st_size
    assert 500_000 < size < 3_000_000


def test_page_and_markdown_show_when_comparisons_resolved(tmp_path, capsys):
    config = unequal(tmp_path, {"high": 0.9, "middle": 0.6, "low": 0.3})
    assert run(capsys, "evaluate", config, "--until-resolved", "score")[0] == 0
    (stopped,) = json.loads((tmp_path / "run" / "leaderboard.json").read_bytes())["stopped"]
    assert stopped["judged_tasks"] < stopped["planned_tasks"]
    told = [(pair["a"], pair["b"], pair["ahead"], str(pair["resolved_at"])) for pair in stopped["pairs"]]
    written = next(
        table for table in tables((tmp_path / "run" / "leaderboard.md").read_text()) if "ahead" in table[0]
    )
    assert [(row[0], row[1], row[4], row[5]) for row in written[2:]] == told
    page = LexborHTMLParser((tmp_path / "run" / "leaderboard.html").read_text())
    shown = [[cell.text() for cell in row.css("th, td")] for row in page.css("table.resolved tbody tr")]
    assert [(row[0], row[1], row[4], row[5]) for row in shown] == told
