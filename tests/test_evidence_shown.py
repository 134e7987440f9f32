"""What the judge quotes from a report, and why: in `adjudge show`, and in the viewer."""

import asyncio
from pathlib import Path

import pytest

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.commands.main import main
from adjudge.engine.config.run import RunConfig
from tests.examples import shipped
from tests.viewing import viewing

QUOTE = "The width of the sluice gate is four metres."


async def made(folder: Path, example: str = "deepresearch-bench-2") -> Path:
    config = RunConfig.load(
        shipped(example) / "adjudge.yaml", out=str(folder / "run"), store=str(folder / "store")
    )
    await evaluate_async(config)
    return folder / "run"


async def test_quotation_stands_with_its_item_in_the_viewer(tmp_path: Path) -> None:
    run = await made(tmp_path)
    async with viewing(run) as reader:
        page = await reader.page("report?system=heron&task=1&protocol=drb2")
        lines = [node.text() for node in page.css(".evidence li")]
        line = await reader.page("evidence?system=heron&task=1&protocol=drb2&n=2")
        hits = await reader.page("search?q=sluice+gate+is+four&where=statements")
    assert any("Names the width of the sluice gate." in one and QUOTE in one for one in lines)
    assert QUOTE in line.text() and "Quoted" in line.text()
    assert QUOTE in hits.text()


async def test_quotation_stands_with_its_item_in_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = await made(tmp_path)
    with pytest.raises(SystemExit) as ended:
        await asyncio.to_thread(main, ["show", str(run), "--task", "1", "--system", "heron"])
    out = " ".join(capsys.readouterr().out.split())
    assert not ended.value.code and f"quoted: {QUOTE}" in out
    assert "met, but rests on a blocked source" in out


async def test_held_mean_says_so_in_the_viewer(tmp_path: Path) -> None:
    run = await made(tmp_path, "healthbench")
    async with viewing(run) as reader:
        page = await reader.page("system?system=tern&metric=healthbench.score")
    assert "mean, held between 0 and 1, over all 2 tasks" in page.text()
    assert "-0.60" in page.text()
