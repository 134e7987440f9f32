"""The result of `adjudge check` as JUnit XML, which continuous integration shows test by test."""

import re
from pathlib import Path
from xml.etree import ElementTree

from adjudge.engine.commands.check import Check, MetricCheck
from adjudge.engine.errors import UsageError

__all__ = ["write_junit"]

_NOT_XML = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_KINDS = {"regressed": "failure", "unclear": "error"}


def write_junit(found: Check, file: str | Path) -> None:
    """Write the result to `file`. Raises UsageError."""
    try:
        Path(file).write_bytes(_xml(found))
    except OSError as error:
        raise UsageError(f"junit: {file} cannot be written: {error.strerror}; choose another file") from error


def _xml(found: Check) -> bytes:
    """One test case per system and metric: a regression is a failure, what the tasks cannot tell an error."""
    kinds = [_KINDS.get(one.outcome, "") for one in found.metrics]
    counts = {"tests": len(kinds), "failures": kinds.count("failure"), "errors": kinds.count("error")}
    suite = ElementTree.Element(
        "testsuite", {"name": "adjudge check"} | {name: str(count) for name, count in counts.items()}
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name in ("run", "baseline", "alpha", "max_drop", "min_scored"):
        value = _text(str(getattr(found, name)))
        ElementTree.SubElement(properties, "property", {"name": name, "value": value})
    for one, kind in zip(found.metrics, kinds, strict=True):
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": _text(one.system), "name": _text(f"{one.protocol}.{one.metric}")}
        )
        if kind:
            ElementTree.SubElement(case, kind, {"message": _text(one.why)}).text = _text(one.why)
        ElementTree.SubElement(case, "system-out").text = _text(_figures(one))
    ElementTree.SubElement(suite, "system-out").text = _text("\n".join(found.notes))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    text: str = ElementTree.tostring(root, encoding="unicode")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + text.encode()


def _figures(one: MetricCheck) -> str:
    named = (
        "before",
        "after",
        "drop",
        "low",
        "high",
        "p",
        "holm_p",
        "p_below",
        "detectable",
        "n_used",
        "n_tasks",
    )
    return "\n".join(f"{name}: {getattr(one, name)}" for name in named)


def _text(text: str) -> str:
    """`text` without the characters that XML has no form for."""
    return _NOT_XML.sub("\ufffd", text)
