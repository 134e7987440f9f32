"""The run viewer over real HTTP: what it shows, that it matches the run, and that hostile text stays text."""

import asyncio
import json
import random
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from selectolax.lexbor import LexborHTMLParser as HTMLParser

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.commands.main import main
from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.run import Run
from adjudge.engine.store import Place
from adjudge.engine.store.journal import live_parts, open_part
from adjudge.engine.store.part import stamped, write_part
from adjudge.engine.store.scorecards import SCORECARDS
from adjudge.engine.tables.cells import number
from adjudge.engine.tables.standings import about_metric
from adjudge.engine.viewer.data.index import CardIndex, RowsSoFar
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.passages import Span, nearest, said_at
from adjudge.engine.viewer.data.query import ListQuery, ReportQuery, SystemQuery, address
from adjudge.engine.viewer.pages import search
from adjudge.engine.viewer.pages.frame import Frame
from adjudge.engine.viewer.pages.home import tasks_page
from adjudge.engine.viewer.pages.system import system_page
from tests.mock_openai import MockOpenAI
from tests.viewing import HUGE, QUICKSTART, Reader, hostile, links, quickstart, viewing
from tests.worlds import ADJUDGE, lines, world

DELTA = "system=delta&task=heat-pumps&protocol=fact"


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """The shipped example under the lexical judge."""
    return asyncio.run(quickstart(tmp_path_factory.mktemp("run")))


@pytest.fixture(scope="module")
def other(tmp_path_factory) -> Path:
    """The same example under a judge that answers at random."""

    async def made() -> Path:
        async with MockOpenAI() as mock:
            judge = {"backend": "openai", "url": mock.url, "model": "mock"}
            return await quickstart(tmp_path_factory.mktemp("other"), judge)

    return asyncio.run(made())


@pytest.fixture(scope="module")
def harm(tmp_path_factory) -> Path:
    return asyncio.run(hostile(tmp_path_factory.mktemp("harm")))


def board(run: Path) -> Leaderboard:
    return msgspec.json.decode((run / "leaderboard.json").read_bytes(), type=Leaderboard)


def texts(page: HTMLParser, selector: str) -> list[str]:
    return [node.text() for node in page.css(selector)]


def rows(page: HTMLParser, table: str = "#rows") -> list[list[str]]:
    """The cells of the rows of a table that are not filtered out."""
    return [
        [(cell.css_first("th > a") or cell).text().strip() for cell in row.css("th, td")]
        for row in page.css(f"{table} tbody tr")
        if "hidden" not in row.attributes
    ]


def column(page: HTMLParser, title: str) -> list[str]:
    """The cells below a heading."""
    place = [text.strip() for text in texts(page, "#rows thead th")].index(title)
    return [cells[place] for cells in rows(page)]


# What is shown.


async def test_every_link_from_the_home_page_works(run):
    kinds = set()
    async with viewing(run) as reader:
        async for path, body, headers in reader.crawl(skip="sort=|metric="):
            kinds.add(path.partition("?")[0])
            if headers["Content-Type"].startswith("text/html"):
                assert "charset=utf-8" in headers["Content-Type"]
                assert body.startswith("<!doctype html>")
                if path != "leaderboard":
                    assert not re.search(r"\b0 of 0\b|\bnan\b|\bNone\b", HTMLParser(body).body.text()), path
    assert kinds >= {
        "",
        "tasks",
        "task",
        "system",
        "report",
        "evidence",
        "questions",
        "question",
        "leaderboard",
    }


async def test_cited_statements_are_marked_by_verdict(run):
    async with viewing(run) as reader:
        page = await reader.page(f"report?{DELTA}")
    supported = " ".join(texts(page, "mark.v-supported"))
    assert "A monitoring programme followed 94 occupied homes" in supported
    assert any("Sizing guides recommend" in text for text in texts(page, "mark.v-unreachable"))
    assert texts(page, ".report a.chip") == ["✓1", "✓2", "✓3", "⊘5", "✓6", "✓4", "✓7"]
    *pairs, lost = texts(page, ".evidence li")
    assert len(pairs) == 7 and "of marks and addresses lead to no pair" in lost


async def test_statement_leads_to_its_supporting_passage(run):
    async with viewing(run) as reader:
        page = await reader.page(f"report?{DELTA}")
        (link,) = (node for node in page.css(".report a.chip") if node.text() == "✓2")
        page = await reader.page(link.attributes["href"])
    assert "The median seasonal coefficient of performance (COP)" in texts(page, "#window")[0]
    assert "Two winters of monitoring" in " ".join(texts(page, ".page"))
    assert any(href.startswith("question?key=") for href in hrefs(page))


def hrefs(page: HTMLParser) -> list[str]:
    return [node.attributes["href"] for node in page.css("a[href]")]


async def test_citation_without_a_page_gives_the_reason(run):
    async with viewing(run) as reader:
        page = await reader.page(f"evidence?{DELTA}&n=5")
    assert "page_gone" in page.body.text() and not page.css("#window")


async def test_every_question_of_every_scorecard_can_be_rendered_again(run, other):
    for folder in (run, other):
        opened = OpenRun(Run.open(folder))
        asked = 0
        for system in opened.record.systems:
            for task in opened.record.tasks:
                wanted = ReportQuery(system=system, task=task)
                if (system, task) == ("cinder", "tree-canopy"):  # not submitted
                    continue
                for card in await opened.find_cards(wanted):
                    found = await opened.questions(wanted, card.protocol)
                    assert set(found) == set(card.judgments), (system, task, card.protocol)
                    asked += len(found)
        assert asked >= 100


async def test_shown_prompt_is_the_one_sent(tmp_path):
    sent: list[list[dict[str, str]]] = []

    async def listening(mock: MockOpenAI, call: object) -> None:
        sent.append(json.loads(call.messages))

    async with MockOpenAI(fault=listening) as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock"}
        run = await quickstart(tmp_path, judge)
        called = mock.calls
        async with viewing(run) as reader:
            listed = await reader.page(f"questions?{DELTA}")
            for link in [href for href in hrefs(listed) if href.startswith("question?")]:
                page = await reader.page(link)
                shown = texts(page, "pre")[-2:]
                assert shown in [[message["content"] for message in messages] for messages in sent]
        assert mock.calls == called


async def test_question_shows_its_raw_reply_and_its_cases(run):
    async with viewing(run) as reader:
        listed = await reader.page(f"questions?{DELTA}")
        links = [href for href in hrefs(listed) if href.startswith("question?")]
        assert len(links) == 6
        page = await reader.page(links[-1])
        alone = await reader.page(links[-1].partition("&")[0])
    assert json.loads(texts(page, "pre")[0])["items"]["c01"] in ("supported", "unsupported")
    assert "delta: heat-pumps" in alone.body.text() and texts(alone, "pre") == texts(page, "pre")
    assert texts(alone, "h1") == ["Statements a cited page supports"]


@pytest.mark.parametrize("written", [0, 2**62])
def test_card_that_names_a_judgment_is_found(run, written):
    record = RunRecord.read(run)
    index = CardIndex.of(Place.of(record.config.store), record.run)
    (card, *_) = index.find("delta", "heat-pumps", 0, 0)
    assert index.naming(card.judgments[-1], written) == card
    assert index.naming("0" * 32, written) is None


def test_verdicts_are_read_without_the_cards_unless_older(run, tmp_path, monkeypatch):
    record = RunRecord.read(run)
    store = Place.of(record.config.store)
    older = Place.of(str(tmp_path)) / SCORECARDS.name
    for name in live_parts(store / SCORECARDS.name):
        table = open_part(store / SCORECARDS.name, SCORECARDS, name).read().drop_columns("verdicts")
        write_part(older, name, table.cast(stamped(table.schema)), SCORECARDS)
    wanted = CardIndex.of(Place.of(str(tmp_path)), record.run).verdicts_of_task("heat-pumps")
    assert len(wanted) == 2 * len(record.systems) and any(
        one.by_kind.get("supported") for one in wanted.values()
    )
    monkeypatch.delattr(CardIndex, "_cards")
    assert CardIndex.of(store, record.run).verdicts_of_task("heat-pumps") == wanted


async def test_order_of_rows_changes_no_page_of_a_system(run):
    rows = pq.read_table(run / "scores.parquet")
    pages = set()
    for seed in range(20):
        opened = OpenRun(Run.open(run))
        order = random.Random(seed).sample(range(len(rows)), len(rows))
        opened.scores = RowsSoFar(lambda order=order: rows.take(order))
        query = SystemQuery(system="delta", protocol="race", metric="overall")
        pages.add(await system_page(opened, Frame("r", "j"), query))
    assert len(pages) == 1


# Every number equals the leaderboard's and leads to its evidence.


async def test_leaderboard_values_equal_those_of_the_linked_pages(run):
    async with viewing(run) as reader:
        for metric in board(run).metrics:
            for row in metric.standings:
                link = address("system", system=row.system, protocol=metric.protocol, metric=metric.metric)
                page = await reader.page(link)
                assert texts(page, "#value") == [number(row.value, metric.scale)], link


async def test_headings_of_metrics_tell_what_they_are(run):
    wanted = next(
        about_metric(one) for one in board(run).metrics if (one.protocol, one.metric) == ("fact", "c_acc")
    )
    heading = "thead [data-tip]"
    async with viewing(run) as reader:
        for path in ("system?system=delta&protocol=fact&metric=c_acc", "task?task=heat-pumps&protocol=fact"):
            tips = [node.attributes["data-tip"] for node in (await reader.page(path)).css(heading)]
            assert wanted in tips and "Source: " in wanted, path
        assert "Higher is better." in str([node.attributes for node in (await reader.page("")).css(heading)])


async def test_random_cells_lead_to_questions_answers_and_pages(run):
    cells = [
        (metric, row)
        for metric in board(run).metrics
        for row in metric.standings
        if row.value and not row.open
    ]
    pooled = {
        (name, one.name)
        for name, own in Run.open(run).metrics.items()
        for one in own
        if one.ratio is not None
    }
    async with viewing(run) as reader:
        for metric, row in random.Random(5).sample(cells, 5):
            page = await reader.page(
                address("system", system=row.system, protocol=metric.protocol, metric=metric.metric)
            )
            if (metric.protocol, metric.metric) not in pooled:
                values = [float(text) for text in column(page, metric.metric) if text != "-"]
                assert sum(values) / metric.n_tasks == pytest.approx(row.value * metric.scale, abs=0.01)
            links = [href for href in hrefs(page) if href.startswith("report?")]
            asked = read = 0
            for link in links:
                report = await reader.page(link)
                listed = await reader.page(link.replace("report?", "questions?"))
                for href in hrefs(listed):
                    if href.startswith("question?"):
                        question = await reader.page(href)
                        assert len(texts(question, "pre")) >= 3, href
                        asked += 1
                for href in {href for href in hrefs(report) if href.startswith("evidence?")}:
                    read += bool((await reader.page(href)).css(".page"))
            assert asked and (read or metric.protocol == "race"), (metric.metric, row.system)


# Tables.


async def test_tables_are_sorted_filtered_and_paged(run):
    async with viewing(run) as reader:
        up = await reader.page("system?system=borealis&protocol=race&metric=overall&sort=value")
        down = await reader.page("system?system=borealis&protocol=race&metric=overall&sort=-value")
        values = column(up, "overall")
        assert values[-1] == "-" and values[:-1] == sorted(values[:-1], key=float)
        assert column(down, "overall") == [*reversed(values[:-1]), "-"]
        assert [node.attributes["aria-sort"] for node in down.css("th[aria-sort]")] == ["descending"]
        kept = await reader.page("system?system=borealis&protocol=race&metric=overall&reason=gold_missing")
        assert [cells[0] for cells in rows(kept)] == ["tree-canopy"]
        tasks = await reader.page("tasks?filter=zh&sort=-id")
        assert [cells[0] for cells in rows(tasks)] == sorted((c[0] for c in rows(tasks)), reverse=True)
        assert len(rows(tasks)) == 2
    opened, frame = OpenRun(Run.open(run)), Frame("run", "judge", rows=4)
    pages = [HTMLParser(await tasks_page(opened, frame, ListQuery(page=page))) for page in (1, 2, 3)]
    await opened.close()
    assert [len(rows(page)) for page in pages] == [4, 2, 0]
    assert "1 to 4 of 6 tasks" in texts(pages[0], ".count") and "tasks?page=2" in hrefs(pages[0])


async def test_task_shows_its_prompt_and_every_system(run):
    async with viewing(run) as reader:
        page = await reader.page("task?task=heat-pumps&protocol=fact")
    assert "How well do air-source heat pumps" in page.body.text()
    found = [cells[:2] for cells in rows(page)]
    assert sorted(system for system, _ in found) == ["atlas", "borealis", "cinder", "delta"]
    assert found == sorted(found, key=lambda cells: -float(cells[1]))


# Two runs.


async def test_two_judges_are_compared_report_by_report(run, other):
    async with viewing(run, other) as reader:
        page = await reader.page("differences?metric=fact.c_acc")
        apart = [abs(float(text)) for text in column(page, "difference") if text != "-"]
        assert apart == sorted(apart, reverse=True) and apart[0] > 0
        for _, _, here, there, difference in rows(page):
            if difference != "-":
                assert float(here) - float(there) == pytest.approx(float(difference), abs=0.011)
        assert len(page.css("svg.scatter circle")) == len(apart)
        some = await reader.page("differences?metric=fact.c_acc&filter=cinder&sort=-value")
        assert {cells[0] for cells in rows(some)} == {"cinder"}
        one = await reader.page(next(href for href in hrefs(page) if href.startswith("difference?")))
        differing = rows_of(one, 0)
        assert differing and all(cells[1] != cells[2] for cells in differing)
        assert all(cells[1] == cells[2] for cells in rows_of(one, 1))
        there = await reader.page("other/")
        assert "mock" in there.css_first("header").text()
        assert (await reader.get("other/differences"))[0] == 200


async def test_two_runs_are_tested_system_by_system(run, other):
    async with viewing(run, other) as reader:
        page = await reader.page("differences?metric=fact.c_acc")
        tested = [
            [cell.text() for cell in row.css("th, td")]
            for row in page.css_first('[aria-label="By system"]').css("tbody tr")
        ]
        reports = rows(page)
        assert [one[0] for one in tested] == sorted({system for system, *_ in reports})
        for system, here, there, difference, _, p, tasks in tested:
            own = [one for one in reports if one[0] == system and one[4] != "-"]
            assert int(tasks) == len(own)
            for shown, at in ((here, 2), (there, 3), (difference, 4)):
                assert float(shown) == pytest.approx(sum(float(one[at]) for one in own) / len(own), abs=0.011)
            assert 2.0 ** (1 - len(own)) <= float(p) <= 1


async def test_evidence_searches_for_nothing(run):
    async with viewing(run) as reader:
        page = await reader.page("evidence?system=delta&task=heat-pumps&protocol=fact&n=2")
        assert page.css_first("#q").attributes["value"] == ""


def rows_of(page: HTMLParser, number: int) -> list[list[str]]:
    return [
        [cell.text() for cell in row.css("th, td")]
        for row in page.css("main details")[number].css("tbody tr")
    ]


# Search.


@pytest.mark.parametrize(
    ("where", "words", "found"),
    [
        ("statements", "Sodium-ion CELLS", "evidence?"),
        ("answers", '"c01":"unsupported"', "question?"),
        ("pages", "median seasonal coefficient", "page?"),
        ("reports", "holistic view", "report?"),
        ("tasks", "heat PUMPS", "task?"),
    ],
)
async def test_search_hits_lead_to_their_place(run, where, words, found):
    async with viewing(run) as reader:
        page = await reader.page(address("search", where=where, q=words))
        marks = texts(page, ".finds mark")
        assert marks and {mark.lower() for mark in marks} == {words.lower()}
        link = next(href for href in hrefs(page) if href.startswith(found))
        assert words.lower() in (await reader.page(link)).html.lower().replace("&quot;", '"')


@pytest.mark.parametrize(
    ("where", "words"), [("statements", "sodium"), ("answers", "new"), ("pages", "the"), ("reports", "a")]
)
async def test_search_continues_where_it_stopped(run, monkeypatch, where, words):
    async with viewing(run) as reader:
        whole = await reader.page(address("search", where=where, q=words))
        wanted = texts(whole, ".finds a")
        monkeypatch.setattr(search, "AT_MOST", 3)
        got: list[str] = []
        path = address("search", where=where, q=words)
        while path:
            page = await reader.page(path)
            got += texts(page, ".finds a")
            path = next((node.attributes["href"] for node in page.css("a[rel=next]")), "")
    assert len(wanted) > 3 and got[: len(wanted)] == wanted and len(set(got)) == len(got)


async def test_absent_words_are_not_found(run, monkeypatch):
    monkeypatch.setattr(search, "SECONDS", 60.0)
    async with viewing(run) as reader:
        for where in ("statements", "answers", "pages", "reports", "tasks"):
            page = await reader.page(address("search", where=where, q="zyzzyva"))
            assert "0 found" in page.body.text() and not page.css("a[rel=next]")


# Access and refusals.


@pytest.mark.parametrize(
    "name",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "evil.example:8301",
        "localhost.evil",
        "[::2]",
        "a b",
        "169.254.169.254",
    ],
)
async def test_foreign_host_name_is_refused(run, name):
    async with viewing(run) as reader:
        for path in ("", "leaderboard", "assets/viewer.js", "nowhere"):
            status, body, headers = await reader.get(path, headers={"Host": name})
            assert status == 421 and "delta" not in body, path
            assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "localhost:1234", "[::1]:80"])
async def test_local_host_names_are_served_on_any_port(run, name):
    async with viewing(run) as reader:
        assert (await reader.get("", headers={"Host": name}))[0] == 200


async def test_request_without_a_host_is_refused(run):
    async with viewing(run) as reader:
        port = int(reader.url.rstrip("/").rpartition(":")[2])
        streams, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        assert (await streams.readline()).split()[1] in (b"400", b"421")
        writer.close()


async def test_server_listens_on_loopback_only(run):
    async with viewing(run) as reader:
        port = int(reader.url.rstrip("/").rpartition(":")[2])
        with socket.socket() as probe:  # would be in use if the viewer had bound every address
            probe.bind(("127.0.0.2", port))


async def test_every_response_has_security_headers(run):
    async with viewing(run) as reader:
        for path in ("", "tasks", "leaderboard", "assets/viewer.js", "nowhere", "task?task=none", "report"):
            _, _, headers = await reader.get(path)
            policy = headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'") and "frame-ancestors 'none'" in policy
            assert "unsafe-inline" not in policy.partition("style-src")[0] and "http" not in policy
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
            assert headers["Referrer-Policy"] == "no-referrer"


async def test_links_work_for_extreme_samples_names_and_urls(tmp_path):
    url = "https://long.example/?q=" + "%20" * 2700
    text = f"The tower is 42 metres high in all seasons of the year [1].\n\n## References\n1. One, {url}\n"
    report = {"task_id": "1", "system": "名" * 2000, "sample": 2**31 - 1, "text": text}
    lines(tmp_path / "reports" / "one.jsonl", [report])
    lines(tmp_path / "pages" / "index.jsonl", [{"url": url, "file": "a.html", "status_code": 200}])
    page = "<html><body><article><p>The tower is 42 metres high.</p></article></body></html>"
    (tmp_path / "pages" / "a.html").write_text(page)
    config = world(
        tmp_path,
        systems=0,
        protocols=[{"name": "fact", "extraction": "markers"}],
        fetch={"mode": "snapshot", "snapshot": "pages"},
    )
    await evaluate_async(RunConfig.load(config))
    async with viewing(tmp_path / "run") as reader:
        long = [path async for path, _, _ in reader.crawl() if len(path) > 18_000]
        about = {path.partition("?")[0] for path in long if "sample=2147483647" in path}
        assert about == {"report", "evidence", "questions", "question"}
        _, found, _ = await reader.get("search?where=pages&q=tower")
        (path,) = (path for path in links("", found) if path.startswith("page?"))
        assert len(path) > 8190 and "42 metres" in (await reader.page(path)).text()


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("report", 400),
        ("report?system=delta", 400),
        ("report?system=delta&task=heat-pumps&sample=-1", 404),
        ("report?system=delta&task=heat-pumps&sample=-2147483649", 400),
        ("report?system=delta&task=heat-pumps&sample=x", 400),
        ("report?system=delta&task=heat-pumps&sample=99999999999999999999", 400),
        ("report?system=delta&task=heat-pumps&sample=7", 404),
        ("report?system=delta&task=heat-pumps&protocol=nope", 404),
        ("report?system=nobody&task=heat-pumps", 404),
        (f"report?system={'x' * 3000}&task=a", 400),
        ("evidence?system=delta&task=heat-pumps&protocol=fact&n=0", 400),
        ("evidence?system=delta&task=heat-pumps&protocol=fact&n=999", 404),
        ("question?key=zz", 400),
        ("question?key=../../../etc/passwd", 400),
        (f"question?key={'0' * 32}", 404),
        ("question?key=" + "0" * 32 + "&system=delta&task=heat-pumps&protocol=fact", 200),
        ("questions?system=delta&task=heat-pumps&protocol=nope", 404),
        ("page?url=file:///etc/passwd", 404),
        ("page?url=%00", 404),
        (f"page?url={'%25' * 8192}", 404),
        (f"page?url={'x' * 8193}", 400),
        ("page", 400),
        ("system?system=nobody", 404),
        ("system?system=delta&metric=nope", 404),
        ("system?system=delta&protocol=nope", 404),
        ("task?task=..%2f..%2frun.json", 404),
        ("tasks?page=0", 400),
        ("tasks?page=9999999", 200),
        ("tasks?sort=__class__", 200),
        ("search?where=everywhere", 400),
        ("search?q=x&after=-1", 400),
        ("search?q=x&after=4611686018427387904&where=answers", 200),
        ("search?q=%ff%fe%00&where=pages", 200),
        ("search?q=(%5B*&where=answers", 200),
        ("differences", 404),
        ("assets/run.json", 404),
        ("assets/../run.json", 404),
        ("assets/%2e%2e%2f%2e%2e%2fpage.py", 404),
        ("../../etc/passwd", 404),
        ("run.json", 404),
        ("scores.parquet", 404),
    ],
)  # fmt: skip
async def test_bad_address_is_refused_without_reading_anything(run, path, status):
    from yarl import URL

    async with viewing(run) as reader:
        async with reader.session.get(URL(reader.url + path, encoded=True)) as response:
            body = await response.text()
            assert response.status == status, body
        assert "Traceback" not in body and "root:" not in body
        assert status != 400 or ("in this address" in body and "$" not in body and "regex" not in body)
        async with reader.session.post(reader.url) as response:
            assert response.status == 405


async def test_viewing_writes_nothing(run):
    store = run.parent / "store"

    def files() -> list[tuple[str, float, int]]:
        found = [*store.rglob("*"), *run.rglob("*")]
        return sorted((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in found)

    before = files()
    async with viewing(run) as reader:
        for path in ("", f"report?{DELTA}", f"questions?{DELTA}", f"evidence?{DELTA}&n=1", "search?q=a"):
            await reader.page(path)
    assert files() == before


async def test_hostile_text_stays_text_on_every_page(harm):
    sizes = []
    async with viewing(harm) as reader:
        async for path, body, headers in reader.crawl(skip="sort="):
            if not headers["Content-Type"].startswith("text/html") or path == "leaderboard":
                continue
            sizes.append(len(body))
            page = HTMLParser(body)
            assert {node.attributes.get("src") for node in page.css("script")} <= {
                "assets/base.js",
                "assets/viewer.js",
                "assets/report.js",
            }, path
            assert not page.css("img, iframe, object, embed, style, base, textarea, [style], [autofocus]"), (
                path
            )
            assert {node.tag for node in page.css("svg *")} <= {
                "rect",
                "a",
                "circle",
                "title",
                "text",
                "line",
            }
            for node in page.css("*"):
                assert not [name for name in node.attributes if name.startswith("on")], path
                for name in ("href", "src", "action", "formaction"):
                    target = (node.attributes.get(name) or "").strip().lower()
                    assert not target.startswith(("javascript:", "file:", "//", "blob:")), path
            assert "\ud800" not in body
    assert len(sizes) > 15 and max(sizes) < 3_000_000


async def test_very_long_text_is_shown_in_parts(harm):
    async with viewing(harm) as reader:
        (to, *_) = (href for href in hrefs(await reader.page("tasks")) if href.startswith("task?"))
        listed = await reader.page(to)
        link = [href for href in hrefs(listed) if href.startswith("report?")][-1]
        read, path = "", link
        while path:
            page = await reader.page(path)
            assert len(page.html) < 600_000
            read += "".join(node.text() for node in page.css(".report"))
            steps = {n.text(): n.attributes["href"] for n in page.css("nav[aria-label=Parts] a")}
            here = int(page.css_first("nav[aria-label=Parts] span").text().split()[1])
            path = steps.get(f"Part {here + 1}", "")
    assert read.count("endless") == HUGE.count("endless")


async def test_run_without_its_input_still_shows_evidence(run, tmp_path):
    record = json.loads((run / "run.json").read_text())
    record["config"]["tasks"] = str(tmp_path / "gone.jsonl")
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / "run.json").write_text(json.dumps(record))
    async with viewing(copy) as reader:
        page = await reader.page(f"report?{DELTA}")
        assert "has moved or is gone" in page.body.text() and len(page.css(".evidence li")) == 8
        listed = await reader.page(f"questions?{DELTA}")
        assert len(rows(listed)) == 6
        question = await reader.page(next(href for href in hrefs(listed) if href.startswith("question?")))
        assert "cannot be shown" in question.body.text() and texts(question, "pre")
        assert (await reader.get("search?q=x&where=reports"))[0] == 404


async def test_unreadable_store_is_a_503(run, tmp_path):
    record = json.loads((run / "run.json").read_text())
    store = shutil.copytree(run.parent / "store", tmp_path / "store")
    (store / "scores" / "9.parquet").write_bytes(b"not Parquet")
    record["config"]["store"] = str(store)
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / "run.json").write_text(json.dumps(record))
    async with viewing(copy) as reader:
        status, body, headers = await reader.get(f"report?{DELTA}")
        assert status == 503 and "9.parquet" in body and "Content-Security-Policy" in headers
        assert (await reader.get(""))[0] == 200


# The command.


def test_command_serves_until_sigterm(run):
    with subprocess.Popen(
        [*ADJUDGE, "view", str(run), "--port", "0", "--json"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            url = json.loads(process.stdout.readline())["url"]
            assert url.startswith("http://127.0.0.1:")
            found = asyncio.run(_status(url))
        finally:
            process.send_signal(signal.SIGTERM)
        assert found == 200 and process.wait(60) == 0


async def _status(url: str) -> int:
    import aiohttp

    async with aiohttp.ClientSession() as session:
        return (await Reader(session, url).get(""))[0]


@pytest.mark.parametrize("arguments", [["nowhere"], [".", "--port", "0"]])
def test_invalid_run_gives_one_line_and_exit_code_2(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit:
        main(["view", *arguments])
    assert exit.value.code == 2 and len(capsys.readouterr().err.strip().splitlines()) == 1


def test_viewed_run_is_the_shipped_example():
    assert RunConfig.load(QUICKSTART).resolved.protocols[1].name == "fact"


# Finding passages.


def found(text: str, *statements: str) -> list[str | None]:
    spans = said_at(text, statements)
    return [None if span is None else text[span.start : span.end] for span in spans]


def test_statement_is_found_by_letters_sentence_or_words():
    text = (
        "# Title\n\nThe **tower** is 42 metres\nhigh [1](https://a.example). It was built in 1931 by masons."
    )
    assert found(text, "the tower is 42 metres high.") == [
        "The **tower** is 42 metres\nhigh [1](https://a.example"
    ]
    assert found(text, "Masons built it in 1931") == ["It was built in 1931 by masons"]
    assert found(text, "Penguins swim", "") == [None, None]


def test_nearest_passage_holds_the_words_and_the_figures():
    page = "Birds fly. The tower was measured twice. It is 42 metres high. Nothing else is known of towers."
    span = nearest(page, "The tower is 42 metres high")
    assert span is not None and "42 metres high" in page[span.start : span.end]
    assert nearest(page, "Penguins swim") is None and nearest("", "tower") is None
    assert nearest("towers", "tower") == Span(0, 6)
