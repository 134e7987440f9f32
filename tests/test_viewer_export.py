"""`adjudge view --export`: a run's pages as files, on a plain file server and from disk."""

import asyncio
import base64
import html
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from selectolax.lexbor import LexborHTMLParser as HTMLParser

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.items import items_of_card, label_readers
from adjudge.engine.runs.run import Run
from adjudge.engine.viewer.book import MADE_BY
from adjudge.engine.viewer.export import export
from adjudge.scoring.contract.scorecard import Scorecard
from adjudge.scoring.deepresearch_bench.fact import Fact
from adjudge.scoring.livedrbench.livedr import LiveDR
from tests.browser import visiting
from tests.commands import run
from tests.viewing import QUICKSTART, exporting, hostile, quickstart, unpacked
from tests.worlds import lines

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.asyncio(loop_scope="session")

REPORT = "report-delta-heat-pumps-*.html"
FEW = {"tasks": ["heat-pumps"], "systems": ["borealis", "delta"]}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return await quickstart(tmp_path_factory.mktemp("quick"))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two reports of the example, which is exported in a quarter of the time."""
    folder = tmp_path_factory.mktemp("small")
    places = {"out": str(folder / "run"), "store": str(folder / "store")}
    await evaluate_async(RunConfig.load(QUICKSTART, select=FEW, **places))
    return folder / "run"


@pytest.fixture(scope="module")
def bare(quick: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run as it is exported without options, to be read only."""
    site = tmp_path_factory.mktemp("a folder") / "site"
    export(str(quick), str(site))
    return site


async def written(run_folder: Path, out: Path, **options: Any) -> Path:
    await asyncio.to_thread(export, str(run_folder), str(out), **options)
    return out


def pages_in(file: Path) -> list[dict[str, Any]]:
    """The packed pages of an exported file."""
    packed = re.search(r'id="packed">([^<]*)</script>', file.read_text())
    assert packed is not None
    found = unpacked(base64.b64decode(packed[1]))
    return list(json.loads(found)["pages"])


def texts(site: Path) -> str:
    """All that an exported folder holds, unpacked."""
    files = sorted(file for file in site.rglob("*") if file.is_file() and "assets" not in file.parts)
    found = []
    for file in files:
        if file.suffix == ".bin":
            found.append(unpacked(file.read_bytes()).decode())
        elif 'id="packed">' in file.read_text():
            found += [page["main"] for page in pages_in(file)]
        else:
            found.append(file.read_text())
    return "\n".join(found)


async def test_exported_links_lead_to_files(bare: Path) -> None:
    names = {str(file.relative_to(bare)) for file in bare.rglob("*")}
    links = set(re.findall(r'(?:href|src|action)="([^"#?]+)', texts(bare)))
    inside = {link for link in links if not re.match(r"https?:|data:", link)}
    assert {"index.html", "tasks.html", "left-out.html", "assets/viewer.js"} <= inside
    assert inside <= names
    assert all('name="robots" content="noindex"' in file.read_text() for file in bare.glob("*.html"))
    assert (bare / "robots.txt").read_text() == "User-agent: *\nDisallow: /\n"


async def test_export_holds_passages_and_pages_on_request(quick: Path, bare: Path, tmp_path: Path) -> None:
    passage = "median seasonal coefficient"
    published = texts(bare)
    whole = texts(await written(quick, tmp_path / "whole", sources=True))
    assert passage in published and passage in whole
    assert not list(bare.glob("page-*"))
    read = [pages_in(file)[0]["main"] for file in (tmp_path / "whole").glob("page-*")]
    held = [HTMLParser(main).css_first(".page") for main in read]
    long = [node.text() for node in held if node is not None and len(node.text()) > 1_000]
    plain = html.unescape(re.sub("<[^>]*>", "", published))
    assert len(long) > 5 and not any(text in plain for text in long)


async def test_gold_of_encrypted_benchmarks_is_left_out(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adjudge.scoring.deepresearch_bench.race import Race

    assert LiveDR.withheld == "encrypted"
    monkeypatch.setattr(Race, "withheld", "encrypted", raising=False)
    bare = await written(small, tmp_path / "bare")
    pages = {
        page["key"][0]: page["main"] for page in pages_in(next(bare.glob(REPORT))) if not page["key"][-1]
    }
    assert "tells the gold of race, which is encrypted" in pages["race"]
    assert "tells the gold" not in pages["fact"]
    assert "the evidence of race" in (bare / "left-out.html").read_text()
    whole = texts(await written(small, tmp_path / "whole", gold=True))
    assert "tells the gold" not in whole


async def test_view_exports_from_the_command_line(small: Path, tmp_path: Path, capsys: Any) -> None:
    site = tmp_path / "site"
    code, out, _ = await asyncio.to_thread(run, capsys, "view", small, "--export", site)
    assert code == 0 and "MB: put " in out and "left out: questions with their prompts" in out
    code, out, _ = await asyncio.to_thread(
        run, capsys, "view", small, "--export", site, "--with-pages", "--json"
    )
    told = json.loads(out)
    assert code == 0 and told["files"] == sum(file.is_file() for file in site.rglob("*"))
    assert not any("with-pages" in line for line in told["left_out"])
    code, _, error = run(capsys, "view", small, "--with-gold")
    assert code == 2 and "need --export DIR" in error
    (site / MADE_BY).unlink()
    code, _, error = await asyncio.to_thread(run, capsys, "view", small, "--export", site)
    assert code == 2 and "holds other files" in error
    code, _, error = await asyncio.to_thread(run, capsys, "view", small, "--export", site / "index.html")
    assert code == 2 and "index.html is a file; pass a new or an empty folder" in error


async def test_commands_of_the_page_on_publishing(
    small: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/publish.md: the commands that write a folder, typed in its order."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "first").symlink_to(small)
    page = (Path(__file__).parents[1] / "docs" / "publish.md").read_text()
    lines = [
        line.partition("#")[0] for line in page.splitlines() if re.match("adjudge view .*--export", line)
    ]
    typed = [line.split()[1:] for line in lines]
    assert len(typed) == 4
    for words in typed:
        code, out, _ = await asyncio.to_thread(run, capsys, *words)
        assert code == 0 and "put site on any web host" in out
    assert (tmp_path / "site" / "left-out.html").is_file()


async def test_exported_folder_opens_from_disk(browser: "Browser", bare: Path) -> None:
    async with visiting(browser, (bare / "index.html").as_uri()) as page:
        await page.get_by_role("link", name="Tasks").click()
        await page.locator("#rows tbody a", has_text="heat-pumps").click()
        await page.get_by_role("heading", name="Task heat-pumps").wait_for()
        file = next(bare.glob(REPORT)).as_uri()
        await page.goto(f"{file}?protocol=fact")
        await page.locator(".report a.chip").first.click()
        await page.locator("dialog mark.window").wait_for()
        await page.goto(f"{file}?protocol=nothing")
        await page.get_by_text("not part of the exported folder").wait_for()


def overridden(run_folder: Path, protocol: str, file: Path) -> tuple[Scorecard, int]:
    """A scorecard of `protocol` with a score that `file`, one override of its verdicts, changes; the line's number."""
    opened = Run.open(run_folder)
    for card, _ in opened.labelled_cards():
        items = items_of_card(card, label_readers(opened.metrics)[card.protocol])
        for n, item in items.items() if card.protocol == protocol else ():
            if not item.labelled.metric:
                continue
            other = next(name for name in item.labelled.kind.labels if name != item.labelled.label)
            row = {"item": item.id, "label": other, "rater": "ann <b>", "verdict": item.labelled.label}
            lines(file, [{**row, "note": "The page <i>says so</i>."}])
            return card, n
    raise AssertionError("no verdict counts in a metric")


async def test_exported_board_has_scores_by_people_too(
    browser: "Browser", small: Path, bare: Path, tmp_path: Path
) -> None:
    labels = tmp_path / "edits.jsonl"
    card, n = overridden(small, "fact", labels)
    site = await written(small, tmp_path / "site", labels=labels)
    async with visiting(browser, (site / "index.html").as_uri()) as page:
        heads = await page.locator("th").all_inner_texts()
        assert any("edited by people" in head for head in heads)
        await page.goto((site / "leaderboard.html").as_uri())
        row = page.locator("#overrides-table tbody tr")
        said = await row.text_content() or ""
        assert card.system in said and "ann <b>" in said and await row.locator("b, i").count() == 0
        file = next(site.glob(f"report-{card.system}-{card.task_id}-*.html")).as_uri()
        await page.goto(f"{file}?protocol=fact")
        figures = page.locator(".figures-row").first
        assert "c_acc, edited by people" in await figures.inner_text()
        people = page.locator(f".evidence [data-n='{n}'] .people")
        assert "The page <i>says so</i>." in await people.inner_text()
        assert await page.get_by_label("People").count() == 1
    async with visiting(browser, (bare / "index.html").as_uri()) as page:
        assert "edited by people" not in await page.locator("body").inner_text()


async def test_overrides_tell_no_gold_that_is_withheld(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = tmp_path / "edits.jsonl"
    card, n = overridden(small, "fact", labels)
    monkeypatch.setattr(Fact, "withheld", "encrypted", raising=False)
    bare = texts(await written(small, tmp_path / "bare", labels=labels))
    assert "The page &lt;i&gt;says so" not in bare and html.escape(card.evidence[n - 1].what) not in bare
    whole = texts(await written(small, tmp_path / "whole", labels=labels, gold=True))
    assert "The page &lt;i&gt;says so" in whole


async def test_show_has_labels_and_both_scores(quick: Path, tmp_path: Path, capsys: Any) -> None:
    labels = tmp_path / "edits.jsonl"
    card, n = overridden(quick, "fact", labels)
    words = ("show", quick, "--task", card.task_id, "--system", card.system)
    code, out, error = await asyncio.to_thread(run, capsys, *words, "--labels", labels)
    assert (code, error) == (0, "")
    assert "edited by people" in out and "differs from the judge (The page <i>says so</i>.)" in out
    found = json.loads((await asyncio.to_thread(run, capsys, *words, "--labels", labels, "--json"))[1])
    (one,) = (each for each in found if each["card"]["protocol"] == "fact")
    assert one["people"][str(n)][0]["rater"] == "ann <b>"
    assert one["edited"]["c_acc"] != one["card"]["scores"]["c_acc"]
    out = (await asyncio.to_thread(run, capsys, *words))[1]
    assert "edited by people" not in out and "people:" not in out
    lines(labels, [{"item": "v0000000000000000", "label": "supported"}])
    code, _, error = await asyncio.to_thread(run, capsys, *words, "--labels", labels)
    assert code == 0 and "labels: none in" in error


async def test_hostile_names_and_texts_stay_in_the_folder(browser: "Browser", tmp_path: Path) -> None:
    run_folder = await hostile(tmp_path)
    async with exporting(run_folder, tmp_path / "out") as reader, visiting(browser, reader.url) as page:
        assert [one.name for one in (tmp_path / "out").iterdir()] == ["site"]
        await page.get_by_role("link", name="Tasks").click()
        await page.locator("#rows tbody a").first.click()
        await page.locator("#rows tbody a").last.click()
        await page.locator(".report a.chip").first.click()
        await page.locator("dialog h1").wait_for()
        assert await page.locator("dialog script, dialog img, main img").count() == 0
        await page.goto(f"{reader.url}search.html?q=tower")
        await page.locator(".finds a").first.wait_for()
        assert await page.locator("main script, main img").count() == 0
    shutil.rmtree(tmp_path / "out")
