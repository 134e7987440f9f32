"""The site: its quickstart is typed as written, its reference pages are made from the code, public names stay."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import threading
import tomllib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
import pyarrow as pa
import pytest

import adjudge
from adjudge.engine.config.protocols import protocol_loaders
from adjudge.engine.store.scorecards import SCORE_COLUMNS
from adjudge.engine.store.upkeep import TABLES
from adjudge.engine.telemetry.metrics import Metrics
from adjudge.scoring.contract.scorecard import Metric, MetricWords
from tests.browser import overflow, resized, violations, visiting
from tests.commands import run
from tests.guide import judge
from tests.public_names import RELEASED, public_names
from tests.worlds import ADJUDGE

if TYPE_CHECKING:
    from playwright.async_api import Browser

ROOT = Path(__file__).parent.parent
QUICKSTART = (ROOT / "docs/quickstart.md").read_text(encoding="utf-8")
OWN_PROTOCOL = (ROOT / "docs/own-protocol.md").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
SERVER = "http://127.0.0.1:8000/v1"


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    """docs/pages.py, which mkdocs loads by its path."""
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "docs/pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs"))  # as mkdocs does
        spec.loader.exec_module(module)
    return module


def files_of(page: str) -> list[tuple[str, str]]:
    """The files that a page shows with their names."""
    return re.findall(r'^```\w+ title="([\w./]+)"\n(.*?)^```$', page, re.MULTILINE | re.DOTALL)


def write_files(folder: Path, page: str) -> None:
    """Write the files that a page shows into `folder`."""
    for name, text in files_of(page):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def typed_in(page: str, *about: str) -> list[list[str]]:
    """The commands of a page that name one of `about`."""
    blocks = re.findall(r"^```([^\n]*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    lines = [line for kind, block in blocks if not kind for line in block.splitlines()]
    return [
        shlex.split(line)
        for line in lines
        if line.startswith("adjudge ") and any(f" {one}" in line for one in about)
    ]


def test_quickstart_works_as_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its files are made as they stand, and its commands run in their order."""
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, QUICKSTART)
    typed = typed_in(QUICKSTART, "adjudge.yaml", "runs/first", "bridges")
    assert [words[1] for words in typed] == [
        "init",
        "evaluate",
        "plan",
        "evaluate",
        "show",
        "compare",
        "evaluate",
    ]
    with judge() as url:
        done = [run(capsys, *(word.replace(SERVER, url) for word in words[1:])) for words in typed]
    assert [code for code, _, _ in done] == [0] * len(typed), done
    said = [out for _, out, _ in done]
    assert "2 reports of 2 systems (A, B)" in said[0] and said[1].index(" A ") < said[1].index(" B ")
    assert "rubrics" in said[3] and "312 metres" in said[4]
    (shown,) = re.findall(r"^```text\n(.*?)^```$", QUICKSTART, re.MULTILINE | re.DOTALL)
    assert shown in said[3]


def test_own_protocol_works_as_typed(tmp_path: Path) -> None:
    """Its files are made as they stand beside the quickstart's; the entry point is what `pip install -e .` leaves."""
    for page in (QUICKSTART, OWN_PROTOCOL):
        write_files(tmp_path, page)
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed = tmp_path / f"{project['name']}-{project['version']}.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    (group,) = project["entry-points"]
    lines = "".join(f"{name} = {place}\n" for name, place in project["entry-points"][group].items())
    (installed / "entry_points.txt").write_text(f"[{group}]\n{lines}")
    with judge() as url:
        config = tmp_path / "adjudge.yaml"
        config.write_text(config.read_text(encoding="utf-8").replace(SERVER, url), encoding="utf-8")
        said = [
            subprocess.run(
                [*ADJUDGE, *words[1:]],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": str(tmp_path)},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for words in typed_in(OWN_PROTOCOL, "adjudge.yaml", "runs/bottomline")
        ]
    assert "whether the opening answers the task" in said[0]
    assert "bottomline" in said[1] and "312 metres" in said[2]


def test_reference_has_every_key_and_option(pages: ModuleType) -> None:
    names = public_names()
    keys, commands = pages.configuration_page(), pages.commands_page()
    for key in names["keys"]:
        assert f"`{key.rpartition('.')[2]}`" in keys, key
    for option in names["commands"]:
        word = option.rpartition(" ")[2]
        assert (
            f"`{word}`" in commands
            or f"`{option}`" in commands
            or word in ("adjudge", "-h", "--help", "--version")
        )


def test_reference_has_every_python_name() -> None:
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^::: (\S+)$", page, re.MULTILINE))
    assert named == {f"adjudge.{name}" for name in adjudge.__all__} | {"adjudge.scoring"}


def test_diagrams_are_drawn_as_part_of_the_page(pages: ModuleType) -> None:
    """Nothing is loaded to draw them, and the build fails for a page that loads anything from elsewhere."""
    source = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    made = pages.drawn(source)
    assert "```mermaid" in source and "```mermaid" not in made
    ids = re.findall(r'<svg id="(diagram-\w+)"', made)
    assert len(ids) == len(set(ids)) == source.count("```mermaid")
    assert made.count('role="region" tabindex="0" aria-label="Diagram"') == len(ids)
    assert not pages.LOADED.search(made) and "<script" not in made
    for loaded in (
        '<script src="https://cdn.example/a.js">',
        '<link rel="stylesheet" href=//cdn.example/a.css>',
    ):
        assert pages.LOADED.search(loaded)
    assert not pages.LOADED.search(
        '<a href="https://a.example"> <script src="../a.js"> <link rel="canonical" href="https://a">'
    )


def test_key_without_words_is_an_error(pages: ModuleType) -> None:
    from mkdocs.exceptions import PluginError

    with pytest.raises(PluginError, match=r"Outer\.silent: has no words"):
        sys.modules["reference.configuration"]._keys(Outer)
    with pytest.raises(PluginError, match=r"Outer\.silent: has no words"):
        sys.modules["reference.columns"].columns(Outer)
    with pytest.raises(PluginError, match=r"outer\.silent: has no definition"):
        sys.modules["reference.metrics"].section("outer", Silent(), None)


class Outer(msgspec.Struct):
    said: Annotated[int, pa.int64()] = 0
    """Said."""
    silent: Annotated[int, pa.int64()] = 0


class Silent(msgspec.Struct):
    name: ClassVar[str] = "outer"
    words: ClassVar[MetricWords] = MetricWords(source="a paper", of={"said": "Said."})

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return (Metric(name="said"), Metric(name="silent"))


def test_reference_has_every_metric_and_column(pages: ModuleType) -> None:
    metrics, columns = pages.metrics_page(), pages.columns_page()
    for name, load in protocol_loaders().items():
        section = metrics.partition(f"## `{name}` ")[2].partition("\n## ")[0]
        for metric in load()().metrics:
            assert f"\n| `{metric.name}` | " in section, f"{name}.{metric.name}"
    for kind in TABLES:
        section = columns.partition(f"## `{kind.name}/` ")[2].partition("\n## ")[0]
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == kind.schema.names
    of_runs = columns.partition("{#run}")[2]
    assert re.findall(r"^\| `(\w+)` \|", of_runs, re.MULTILINE) == list(SCORE_COLUMNS)


def test_reference_has_every_metric_that_is_watched(pages: ModuleType) -> None:
    """Those of a running process, and those that the dashboard and the alerts ask for."""
    page = set(re.findall(r"^\| `(\w+)` \|", pages.prometheus_page(), re.MULTILINE))
    registry = Metrics().registry
    made = {family.name for family in registry.collect()}
    assert made == {name for name in made if any(one.startswith(name) for one in page)}
    wanted = {
        name
        for file in ("dashboard.json", "alerts.yml")
        for name in re.findall(r"\badjudge_[a-z_]+", (ROOT / "deploy" / file).read_text(encoding="utf-8"))
    }
    assert len(wanted) > 20 and wanted <= page


def test_public_names_of_the_last_release_stay() -> None:
    """A name that goes is listed in the changelog (docs/versioning.md)."""
    released = msgspec.json.decode(RELEASED.read_bytes(), type=dict[str, list[str]])
    now = public_names()
    gone = {kind: set(names) - set(now[kind]) for kind, names in released.items()}
    unsaid = [
        name
        for names in gone.values()
        for name in names
        if not re.search(rf"^- Removed:.*`{re.escape(name)}`", CHANGELOG, re.MULTILINE)
    ]
    assert not unsaid, "gone, and no line `- Removed: ...` of the changelog names it"


def test_tables_of_the_site_are_regions_with_a_name(pages: ModuleType) -> None:
    table = (
        "<table><tr><th>system</th><th>a <code>score</code></th></tr><tr><td>a</td><td>1</td></tr></table>"
    )
    found = pages.on_page_content(f"<p>a</p>{table}", None, None, None)
    region = '<div class="scroll" role="region" tabindex="0" aria-label="Table: system, a score">'
    assert found == f"<p>a</p>{region}{table}</div>"


@pytest.mark.asyncio(loop_scope="session")
async def test_first_page_and_chooser_fit_every_window(browser: "Browser", tmp_path: Path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    handler = partial(QuietHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name in ("index.html", "protocols/choose.html"):
            async with visiting(browser, f"http://127.0.0.1:{server.server_port}/{name}") as page:
                for width, scheme in ((1440, "light"), (390, "light"), (390, "dark")):
                    await resized(page, width, scheme)
                    assert await overflow(page) == 0
                    assert await violations(page) == []
        server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.asyncio(loop_scope="session")
async def test_links_in_a_text_are_underlined(browser: "Browser", tmp_path: Path) -> None:
    style = (ROOT / "docs/site.css").read_text()
    links = '<p>See <a href="#a">this</a>.</p><p><a class="md-button" href="#b">Go</a></p>'
    page_of = tmp_path / "page.html"
    page_of.write_text(
        f'<title>t</title><style>a {{ text-decoration: none }} {style}</style><div class="md-typeset">{links}'
    )
    async with visiting(browser, page_of.as_uri()) as page:
        found = await page.evaluate(
            "[...document.links].map((one) => getComputedStyle(one).textDecorationLine)"
        )
    assert found == ["underline", "none"]
