"""The configuration file: YAML 1.2's words, without a key that stands twice."""

import difflib
import re
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError
from yaml.error import MarkedYAMLError

from adjudge.engine.config.settings import ConfigError
from adjudge.engine.file_kinds import DOCUMENTS, SAVE_AS, TABLES

__all__ = ["load_yaml"]


class _Yaml(yaml.SafeLoader):
    """Reads true and false as YAML 1.2 does: `off`, `on`, `yes` and `no` are words. A key may stand once."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """The next mapping. Raises YAMLError for a key that stands in it twice."""
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            name = key.tag, str(key.value)
            if name in seen:
                problem = f"the key {key.value!r} stands here for the second time; remove one of the two"
                raise ComposerError(problem=problem, problem_mark=key.start_mark)
            seen.add(name)
        return node

    def construct_scalar(self, node: Any) -> Any:
        """A text. Raises YAMLError for one that UTF-8 cannot encode."""
        text = super().construct_scalar(node)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            problem = "half of a surrogate pair; write the character itself, or as \\UXXXXXXXX"
            raise ConstructorError(problem=problem, problem_mark=node.start_mark) from error
        if "\0" in text:
            raise ConstructorError(problem="a NUL character; remove it", problem_mark=node.start_mark)
        return text

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """What `node` stands for. Raises YAMLError for a number or date that there is none of, or beyond 64 bits."""
        try:
            found = super().construct_object(node, deep)
        except (ValueError, OverflowError) as error:
            shown = node.value if len(node.value) <= _SHOWN else f"{node.value[:_SHOWN]}..."
            problem = (
                f"{shown} cannot be read as {node.tag.rpartition(':')[2]}; put quotation marks around a text"
            )
            raise ConstructorError(problem=problem, problem_mark=node.start_mark) from error
        if isinstance(found, int) and not -(1 << 63) <= found < 1 << 63:
            problem = "a number beyond 64 bits; write a smaller one"
            raise ConstructorError(problem=problem, problem_mark=node.start_mark)
        return found


_Yaml.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


_Yaml.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


_SHOWN = 20
_NEAR = 0.8  # of two names' letters
_MOST = 10_000_000  # characters and values, each alias written out: what is read holds them all


def _written_out(node: Any, known: dict[int, int]) -> int:
    """The size of `node` with every alias written out. Raises YAMLError for one that holds itself, or is too large."""
    size = known.get(id(node))
    if size is not None:
        if size:
            return size
        raise ComposerError(
            problem="an alias for what it stands in; write it out", problem_mark=node.start_mark
        )
    known[id(node)] = 0  # at work
    if isinstance(node, yaml.ScalarNode):
        size = 1 + len(node.value)
    else:
        inner = (
            [each for pair in node.value for each in pair]
            if isinstance(node, yaml.MappingNode)
            else node.value
        )
        size = 1 + sum(_written_out(each, known) for each in inner)
    if size > _MOST:
        problem = f"more than {_MOST:,} characters with its aliases written out; leave some out"
        raise ComposerError(problem=problem, problem_mark=node.start_mark)
    known[id(node)] = size
    return size


def _read(text: str) -> Any:
    loader = _Yaml(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _written_out(node, {})
        return loader.construct_document(node)
    finally:
        loader.dispose()


_HINTS = (
    (r"'\t'", "indent with spaces, not with tabs"),
    ("mapping values are not allowed here", "put quotation marks around a value that has a colon"),
    (
        "expected alphabetic or numeric character",
        "put quotation marks around a value that begins with * or &",
    ),
    ("that cannot start any token", "put quotation marks around the value"),
    ("<document start>", "a configuration is one mapping of settings (tasks:, reports:, ...)"),
)
"""What to do about what the reader of YAML says, for what people write first."""


def _hint(problem: str | None) -> str:
    return next((f"; {hint}" for part, hint in _HINTS if part in (problem or "")), "")


def _instead(file: Path, error: OSError) -> str:
    """What to give instead of a `file` that cannot be read."""
    if isinstance(error, IsADirectoryError):
        inside = file / "adjudge.yaml"
        if inside.is_file():
            return f"; give {inside}"
        if (file / "run.json").is_file():
            return f"; this is a run, which `adjudge leaderboard {file}` shows; give its configuration"
        return f"; `adjudge init {file}` writes a configuration for the reports in it"
    if isinstance(error, FileNotFoundError):
        here = sorted(one.name for suffix in ("yaml", "yml") for one in file.parent.glob(f"*.{suffix}"))
        if near := difflib.get_close_matches(file.name, here, n=1, cutoff=_NEAR):
            return f"; give {file.with_name(near[0])}"
        return "; correct the path, or have `adjudge init` write one for the reports in a folder"
    return ""


_NO_SETTINGS = (TABLES | DOCUMENTS | SAVE_AS.keys() | {".zip"}) - {".json", ".txt"}


def load_yaml(file: Path) -> dict[str, Any]:
    """The mapping in `file`. Raises ConfigError for a file that is unreadable or not a mapping."""
    kind = file.suffix.lower()
    if kind in _NO_SETTINGS and file.is_file():
        raise ConfigError(
            f"{file}: a {kind} file is not a configuration; `adjudge init {file.parent}` writes one for the reports in "
            "that folder"
        )
    try:
        raw = _read(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}{_instead(file, error)}") from error
    except MarkedYAMLError as error:  # its text would repeat lines of the file
        at = error.problem_mark
        where = "" if at is None else f", line {at.line + 1}, column {at.column + 1}"
        raise ConfigError(f"{file}{where}: not valid YAML: {error.problem}{_hint(error.problem)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not valid YAML: it is not in UTF-8; save it as UTF-8") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: not valid YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise ConfigError(f"{file}: nested too deep; remove brackets or indentation") from error
    if not isinstance(raw, dict):
        found = (
            "is empty" if raw is None else f"holds a {'list' if isinstance(raw, list) else 'single value'}"
        )
        raise ConfigError(
            f"{file}: {found}; write a mapping of settings (tasks:, reports:, ...), as `adjudge init` does"
        )
    return raw
