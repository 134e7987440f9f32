"""The page of every configuration key: keys and types from the structs, words from the text under each key."""

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from mkdocs.exceptions import PluginError
from reference.words import words_of

from adjudge.engine.config.protocols import protocol_loaders
from adjudge.engine.config.run import RunConfig

SHARED = {"pages", "checkout", "min_answered"}
"""Options of protocols that the run's own keys set."""


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
