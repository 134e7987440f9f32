"""What `mkdocs` does not read from docs/ as it stands: reference pages made from the code, and pages of other folders.

A key, option, metric or column without words is an error, so a page cannot be older than the code it is made from.
"""

import posixpath
import re
from pathlib import Path

from diagrams import drawn
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from reference.columns import columns_page
from reference.commands import commands_page
from reference.configuration import configuration_page
from reference.metrics import metrics_page
from reference.prometheus import prometheus_page

ROOT = Path(__file__).parent.parent
ELSEWHERE = (
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benchmarks/README.md",
    "deploy/README.md",
    "deploy/rewards.md",
)
LINK = re.compile(r"(?<!!)\[([^\]\n]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
NAMED = re.compile(r"`((?:docs|deploy|benchmarks)/[\w./-]*\.md|(?:docs|deploy)/[\w/]*/|[A-Z_]+\.md)`")
LOADED = re.compile(
    r"<(?:script|img|iframe|source|link(?=[^>]*stylesheet))[^>]* (?:src|href)=.?(?:https?:)?//[^ >]*"
)
SEARCH = 'data-md-component="search" role="dialog"'
TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
HEAD = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
TAG = re.compile(r"<[^>]*>")
CODE = re.compile(r"(^```.*?^```$|(?<!\[)`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and those of other folders."""
    made = {
        "reference/configuration.md": configuration_page(),
        "reference/commands.md": commands_page(),
        "reference/metrics.md": metrics_page(),
        "reference/prometheus.md": prometheus_page(),
        "reference/store.md": columns_page(),
    }
    for name in ELSEWHERE:
        made[name] = (ROOT / name).read_text(encoding="utf-8")
    for uri, text in made.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Raise an error for a page that no menu leads to."""
    lost = [page.src_uri for page in files.documentation_pages() if page.page and page.page.parent is None]
    known = {"index.md", "quickstart.md", "guide.md"}
    if set(lost) - known:
        raise PluginError(f"in no menu: {', '.join(sorted(set(lost) - known))}")
    return nav


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to pages of the site where there is one, else to the repository, and make links of pages' names."""
    uri = page.file.src_uri
    here = uri if uri in ELSEWHERE else f"docs/{uri}"

    def led(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
        return f"[{words}]({_address(path, uri, config, files)}{anchor})"

    def named(found: re.Match[str]) -> str:
        path = found[1] if found[1].endswith(".md") else f"{found[1]}README.md"
        return f"[{found[1]}]({_address(path, uri, config, files)})"

    parts = CODE.split(drawn(markdown))  # every second one is code
    return "".join(
        NAMED.sub(named, part) if n % 2 and "\n" not in part else LINK.sub(led, part) if not n % 2 else part
        for n, part in enumerate(parts)
    )


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put every table into a region that can be scrolled with keys, named by the heads of its columns."""

    def region(found: re.Match[str]) -> str:
        heads = ", ".join(TAG.sub("", head).strip() for head in HEAD.findall(found[0]))
        return f'<div class="scroll" role="region" tabindex="0" aria-label="Table: {heads}">{found[0]}</div>'

    return TABLE.sub(region, html)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Name the theme's search for screen readers. Raise an error for a page that loads anything from elsewhere."""
    if found := LOADED.search(output):
        raise PluginError(f"{page.file.src_uri}: loads something from elsewhere: {found[0]}")
    return output.replace(SEARCH, f'{SEARCH} aria-label="Search"')


def _address(path: str, uri: str, config: MkDocsConfig, files: Files) -> str:
    """Where the repository's file `path` is found, seen from the page `uri`."""
    target = path.removeprefix("docs/")
    if files.get_file_from_path(target) is not None:
        return posixpath.relpath(target, posixpath.dirname(uri) or ".")
    if not (ROOT / path).exists():
        raise PluginError(f"{uri}: leads to {path}, which does not exist")
    return f"{config.extra['repository']}/blob/main/{path}"
