"""What `mkdocs` does not read from docs/ as it stands: reference pages made from the code, and pages of other folders.

A key, an option or a metric without words is an error, so a page cannot be older than the code it is made from.
"""

import argparse
import ast
import inspect
import posixpath
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

from adjudge.engine.cli.parser import parser
from adjudge.engine.config.protocols import protocol_loaders
from adjudge.engine.config.run import RunConfig

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
SHARED = {"pages", "checkout", "min_answered"}  # options of protocols that the run's own keys set
LINK = re.compile(r"(?<!!)\[([^\]\n]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
NAMED = re.compile(r"`((?:docs|deploy|benchmarks)/[\w./-]*\.md|(?:docs|deploy)/[\w/]*/|[A-Z_]+\.md)`")
CODE = re.compile(r"(^```.*?^```$|(?<!\[)`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and those of other folders."""
    made = {
        "reference/configuration.md": configuration_page(),
        "reference/commands.md": commands_page(),
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

    parts = CODE.split(markdown)  # every second one is code
    return "".join(
        NAMED.sub(named, part) if n % 2 and "\n" not in part else LINK.sub(led, part) if not n % 2 else part
        for n, part in enumerate(parts)
    )


def _address(path: str, uri: str, config: MkDocsConfig, files: Files) -> str:
    """Where the repository's file `path` is found, seen from the page `uri`."""
    target = path.removeprefix("docs/")
    if files.get_file_from_path(target) is not None:
        return posixpath.relpath(target, posixpath.dirname(uri) or ".")
    if not (ROOT / path).exists():
        raise PluginError(f"{uri}: leads to {path}, which does not exist")
    return f"{config.extra['repository']}/blob/main/{path}"


# Configuration: keys and types from the structs, words from the text under each key.


def configuration_page() -> str:
    """The page of every key."""
    sections = "\n\n".join(_section(kind, path) for kind, path in _structs(RunConfig, "", {}).items())
    protocols = "\n\n".join(_protocol(name) for name in sorted(protocol_loaders()))
    return f"""# Configuration

A configuration is a YAML file; the command line overrides it. Unknown keys are errors. Relative paths start at the
file's folder. `adjudge plan CONFIG` checks a file without asking a judge.

{sections}

## Options of protocols

In `protocols:`, an entry is a name or a mapping of `name` and options. Every entry takes `call: own` or
`call: published` ([published calls](../protocols/published-calls.md)). Protocols that are not listed have no options.

{protocols}
"""


def _structs(kind: type, path: str, found: dict[type, str]) -> dict[type, str]:
    """`kind` and the structs that its keys hold, each with the first key that holds it."""
    found[kind] = path
    for field in msgspec.structs.fields(kind):
        for one in _held(field.type):
            if one not in found:
                _structs(one, f"{path}.{field.encode_name}".removeprefix("."), found)
    return found


def _held(kind: Any) -> Iterator[type]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
    for argument in getattr(kind, "__args__", ()):
        yield from _held(argument)


def _section(kind: type, path: str) -> str:
    title = f"`{path}:`" if path else "Top level"
    said = inspect.getdoc(kind) or ""
    return f"## {title} {{#{kind.__name__}}}\n\n{said}\n\n{_keys(kind)}"


def _protocol(name: str) -> str:
    kind = protocol_loaders()[name]()
    table = _keys(kind, SHARED - {"min_answered"})
    return f"### `{name}` {{#protocol-{name}}}\n\n{table}" if table else ""


def _keys(kind: type, without: Iterable[str] = ()) -> str:
    _, parts = msgspec.json.schema_components([kind], ref_template="{name}")
    properties = parts[kind.__name__]["properties"]
    words = words_of(kind)
    rows = []
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in without:
            if not words.get(field.name):
                raise PluginError(f"{kind.__module__}.{kind.__name__}.{field.name}: has no words under it")
            about = properties[field.encode_name]
            said = f"{' '.join(words[field.name].split())}<br>*{_type(about)}{_default(about)}*"
            rows.append(f"| `{field.encode_name}` | {said} |")
    return "\n".join(["| key | meaning |", "|---|---|", *rows]) if rows else ""


def words_of(kind: type) -> dict[str, str]:
    """The text under each field of a struct, those it inherits among them."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base is not msgspec.Struct and issubclass(base, msgspec.Struct):
            [node] = ast.parse(textwrap.dedent(inspect.getsource(base))).body
            assert isinstance(node, ast.ClassDef)
            for pair in zip(node.body, node.body[1:], strict=False):
                match pair:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                        value=ast.Constant(value=str(text))
                    ):
                        found[name] = text
    return found


def _type(about: dict[str, Any]) -> str:
    if "anyOf" in about:
        return " or ".join(_type(one) for one in about["anyOf"] if one.get("type") != "null")
    if "$ref" in about:
        return f"[mapping](#{about['$ref']})"
    if "enum" in about:
        return " or ".join(f"`{one}`" for one in about["enum"])
    match about.get("type"):
        case "array" if "prefixItems" in about:
            return f"list of {len(about['prefixItems'])}"
        case "array":
            return f"list of {_type(about.get('items') or {})}"
        case "object":
            inner = about.get("additionalProperties")
            return f"mapping to {_type(inner)}" if isinstance(inner, dict) and inner else "mapping"
        case "integer" | "number" as kind:
            return f"{kind}{_range(about)}"
        case "string":
            return "date" if about.get("format") == "date" else "text"
        case "boolean":
            return "true or false"
        case _:
            return "anything"


def _range(about: dict[str, Any]) -> str:
    signs = {
        "minimum": "at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "exclusiveMaximum": "below",
    }
    said = [f"{sign} {about[key]:g}" for key, sign in signs.items() if key in about and abs(about[key]) < 1e9]
    return f" {', '.join(said)}" if said else ""


def _default(about: dict[str, Any]) -> str:
    if "default" not in about:
        return ""
    value = about["default"]
    if value in (None, "", [], {}) or isinstance(value, dict):
        return ""
    return f"; default `{msgspec.json.encode(value).decode()}`".replace("|", "\\|")


# Commands, from the parser.


def commands_page() -> str:
    """The page of every command and option."""
    [commands] = [one for one in parser()._actions if isinstance(one, argparse._SubParsersAction)]
    listed = "\n\n".join(
        _command(name, commands.choices[name], str(one.help))
        for name, one in ((one.dest, one) for one in commands._choices_actions)
    )
    return f"""# Commands

Results go to stdout, progress and logs to stderr. `--json` prints one JSON document instead of tables. A misspelt
command, option or name is answered with the nearest ones.

| exit code | means |
|--:|---|
| 0 | done; every scorecard is scored |
| 3 | done; something is unscored, a line was rejected, or `check` had too little to tell |
| 2 | the command or its configuration cannot be used; one line says what to do |
| 4 | `check` found a regression |
| 130 | interrupted; the same command goes on |
| 1 | anything else, such as a judge that cannot be used |

{listed}
"""


def _command(name: str, command: argparse.ArgumentParser, said: str, level: int = 2) -> str:
    inner = [one for one in command._actions if isinstance(one, argparse._SubParsersAction)]
    options = [one for one in command._actions if one not in inner and one.dest != "help"]
    rows = []
    for one in options:
        if one.help == argparse.SUPPRESS:
            continue
        if not one.help:
            raise PluginError(f"adjudge {name}: {one.option_strings or one.dest}: has no help")
        words = ", ".join(f"`{each}`" for each in one.option_strings) or f"`{one.metavar or one.dest}`"
        value = _value(one) if one.option_strings else ""
        rows.append(f"| {words}{value} | {str(one.help) % _shown(one)} |".replace("||", "\\|\\|"))
    table = "\n".join(["| option | does |", "|---|---|", *rows]) if rows else ""
    parts = [f"{'#' * level} `adjudge {name}`", f"{said[:1].upper()}{said[1:]}.", table]
    for each in inner:
        parts += [
            _command(f"{name} {one.dest}", each.choices[one.dest], str(one.help), 3)
            for one in each._choices_actions
        ]
    return "\n\n".join(filter(None, parts))


def _shown(one: argparse.Action) -> dict[str, object]:
    return {"default": one.default, "metavar": one.metavar, "dest": one.dest}


def _value(one: argparse.Action) -> str:
    if one.nargs == 0:
        return ""
    if one.choices is not None:
        return " " + ", ".join(f"`{each}`" for each in one.choices)
    metavar = one.metavar if isinstance(one.metavar, str) else one.dest.upper()
    more = " ..." if one.nargs in ("+", "*") else ""
    return f" `{metavar}{more}`"
