"""Lines of every published layout, and what is read of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from adjudge.engine.formats.dataset import FormatError, load_dataset

PROMPTS = {"1": "Compare the bridges of two towns.", "2": "Who built the mill?"}
HUGE = "9" * 5000
Row = dict[str, Any]


def lines(file: Path, rows: list[Row]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")


def own(folder: Path) -> Path:
    lines(folder / "tasks.jsonl", [{"id": key, "prompt": prompt} for key, prompt in PROMPTS.items()])
    return folder / "tasks.jsonl"


def drb(folder: Path) -> Path:
    lines(folder / "query.jsonl", [{"id": int(key), "prompt": prompt} for key, prompt in PROMPTS.items()])
    return folder


def livedr(folder: Path) -> Path:
    rows = [
        {"key": key, "category": "entities", "question": prompt, "ground_truths": '[["a"]]'}
        for key, prompt in PROMPTS.items()
    ]
    lines(folder / "questions.jsonl", rows)
    return folder / "questions.jsonl"


def dr3(folder: Path) -> Path:
    for key, prompt in PROMPTS.items():
        lines(folder / key / "task.json", [{"query": prompt}])
    return folder


def rigorous(folder: Path) -> Path:
    empty: Row = {"qsr": [], "fak": [], "fdk": [], "tsl": []}
    rows = [{"uid": int(key), "query": prompt, **empty} for key, prompt in PROMPTS.items()]
    lines(folder / "DrBench.jsonl", rows)
    return folder


def drmi(folder: Path) -> Path:
    lines(folder / "papers.jsonl", [{"id": key, "question": prompt} for key, prompt in PROMPTS.items()])
    return folder


LAYOUTS: dict[str, tuple[Callable[[Path], Path], Row]] = {
    "adjudge": (own, {"task_id": "1", "system": "s", "text": "A report."}),
    "deepresearch-bench": (drb, {"id": 1, "article": "A report."}),
    "livedrbench": (livedr, {"key": "1", "preds": [["a"]]}),
    "dr3-eval": (dr3, {"id": "1", "report": "A report."}),
    "rigorous": (rigorous, {"uid": 1, "text": "A report."}),
    "drmi": (drmi, {"id": "1", "report": "A report."}),
}


def changed(layout: str, **fields: object) -> Row:
    return {**LAYOUTS[layout][1], **fields}


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=2**62, max_value=2**80),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["1", "2", PROMPTS["1"], PROMPTS["2"], HUGE, "[[", '[["a"]]', "\x00", " "]),
)


VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


FIELDS = (
    "task_id system sample text citations answer plan evidence trace usage seconds mode id article prompt key preds "
    "question prediction report size uid annotations input_tokens total_tokens retrieved"
).split()


@st.composite
def any_line(draw: st.DrawFn, layout: str) -> bytes:
    """A good row with fields changed, dropped and added, then perhaps cut or with bytes changed."""
    row = dict(LAYOUTS[layout][1])
    for name in draw(st.lists(st.sampled_from(FIELDS), max_size=4)):
        row[name] = draw(VALUES)
    for name in draw(st.lists(st.sampled_from(sorted(row)), max_size=1)):
        row.pop(name, None)
    line = bytearray(json.dumps(row, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass"))
    for _ in range(draw(st.sampled_from([0, 0, 1, 3]))):
        at = draw(st.integers(0, len(line)))
        line[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(line)


def check_line(layout: str, folder: Path, line: bytes) -> None:
    """A good row of another file is read whatever `line` holds; each line of the file is a report, or rejected."""
    tasks = LAYOUTS[layout][0](folder / "data")
    good = folder / "good.jsonl"
    good.write_text(json.dumps(LAYOUTS[layout][1] | {"system": "good"}))
    fuzzed = folder / "fuzzed.jsonl"
    fuzzed.write_bytes(line)
    try:
        dataset = load_dataset(layout, str(tasks), [str(good), str(fuzzed)])
    except FormatError as error:
        assert "before with other content" in str(error)
        return
    stated = [report for report in dataset.reports if not report.where.endswith(":0")]
    assert "good" in dataset.systems
    for case in dataset.cases():
        assert case.report.text.encode("utf-8", "surrogatepass") is not None
    seen = {report.where for report in stated if "fuzzed" in report.where}
    seen |= {f"{found.file}:{found.line}" for found in dataset.rejected}
    written = [number for number, part in enumerate(line.split(b"\n"), 1) if part.strip()]
    assert len(seen) <= len(written) and (seen or not written or len(stated) < 2)
