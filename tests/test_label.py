"""`adjudge label`: the sample, the file of labels, who may post to the page, and the table to fill in."""

import csv
import json
from pathlib import Path

import aiohttp
import msgspec
import pytest
from selectolax.lexbor import LexborHTMLParser as HTMLParser

from adjudge.engine.errors import UsageError
from adjudge.engine.runs.items import Item, Label, read_labels, stratum_sizes
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.run import Run
from adjudge.engine.statistics.labels import with_labels
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.labelling import (
    LabelDesk,
    LabelFile,
    Sample,
    cell,
    drawn,
    sampled,
    write_sheet,
)
from adjudge.scoring.contract.labels import LabelKind, Labelled
from adjudge.scoring.contract.scorecard import MISSING, Evidence
from tests.commands import one_line
from tests.commands import run as command
from tests.labelled import example
from tests.made_runs import made_run
from tests.viewing import quickstart

KIND = LabelKind(name="k", question="Is it?", labels={"yes": 1.0, "no": 0.0})


def items(**counts: int) -> list[Item]:
    """So many items of each system; every fifth verdict is no."""
    return [
        Item(
            id=f"{system}{number}",
            protocol="p",
            system=system,
            task_id=str(number),
            sample=0,
            line=Evidence(what="x", outcome=MISSING),
            labelled=Labelled.of(KIND, "no" if number % 5 == 0 else "yes"),
        )
        for system, count in counts.items()
        for number in range(count)
    ]


def test_sample_is_balanced_and_grows_without_changing() -> None:
    every = items(a=200, b=50, c=3)
    found = drawn(every, 60, seed=1)
    counts = stratum_sizes(found)
    assert len(found) == 60 and len({item.id for item in found}) == 60
    assert {(one.system, one.label): n for one, n in counts.items() if one.system == "c"} == {
        ("c", "yes"): 2,
        ("c", "no"): 1,
    }
    others = [n for one, n in counts.items() if one.system != "c" and (one.system, one.label) != ("b", "no")]
    assert counts[("p", "k", "b", "no")] == 10 and max(others) - min(others) <= 1
    assert drawn(every[::-1], 90, seed=1)[:60] == found != drawn(every, 60, seed=2)
    assert len(drawn(every, 10_000, seed=1)) == 253


def test_raters_share_the_overlap_and_divide_the_rest() -> None:
    sample = Sample(items(a=100), 0.2)
    ann, bob = sample.order("ann"), sample.order("bob")
    assert len(sample.shared) == 20 and {*map(id, ann)} == {*map(id, bob)}
    assert [item.id in sample.shared for item in ann] == [item.id in sample.shared for item in bob]
    assert ann != bob
    assert len(Sample(items(a=7), 1.0).shared) == 7 and not Sample(items(a=7), 0.0).shared


def test_file_takes_several_raters_and_undo(tmp_path: Path) -> None:
    path = tmp_path / "new" / "labels.jsonl"
    ann, bob = LabelFile(path), LabelFile(path)
    ann.add(Label(item="v1", rater="ann", label="yes"))
    ann.add(Label(item="v2", rater="ann", skipped=True))
    bob.add(Label(item="v1", rater="bob", label="no"))
    ann.add(Label(item="v1", rater="ann", label="no"))
    assert list(ann.by("ann")) == ["v2", "v1"] and ann.taken("ann") == {"v1"} and bob.taken("bob") == {"v1"}
    ann.add(Label(item="v1", rater="ann"))
    bob.refresh()
    assert list(bob.by("ann")) == ["v2"] and bob.taken("bob") == set()
    assert [label.rater for label in read_labels(path)] == ["bob"]
    for file in (ann, bob):
        file.close()


@pytest.mark.parametrize("content", ["not a label\n", '{"item": 3}\n', "[1]\n", '{"label": "x"}\n'])
def test_file_of_something_else_is_not_written_to(tmp_path: Path, content: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(content)
    with pytest.raises(UsageError, match=r"out: .*notes\.txt is not a file of labels"):
        LabelFile(path)
    assert path.read_text() == content


async def test_only_the_page_itself_can_label(tmp_path: Path) -> None:
    run = OpenRun(Run.open(await quickstart(tmp_path)))
    sample = Sample(sampled(run, 5), 0.0)
    path = tmp_path / "labels.jsonl"
    desk = LabelDesk(run, sample, LabelFile(path), "ann")
    url = await desk.start(0)
    try:
        async with aiohttp.ClientSession() as session:
            async with session.get(url) as response:
                page = HTMLParser(await response.text())
                assert "default-src 'none'" in response.headers["Content-Security-Policy"]
            fields = {
                name: page.css_first(f"[name={name}]").attributes["value"] for name in ("token", "item")
            }
            good = {**fields, "label": "supported"}

            async def posted(form: dict[str, str], **headers: str) -> int:
                async with session.post(url, data=form, headers=headers, allow_redirects=False) as response:
                    return response.status

            assert await posted(good, Host="evil.example") == 421
            assert await posted(good, Origin="https://evil.example") == 403
            assert await posted(good, Origin="null") == 403
            assert await posted({**good, "token": "x"}) == 403
            assert await posted({**good, "label": "perhaps"}) == 400
            assert await posted({**good, "item": "v0"}) == 400
            assert await posted({**good, "note": "n" * 100_000}) == 413
            forms = "application/x-www-form-urlencoded"
            for body, kind, status in [
                (b"\xff" * 100, forms, 400),
                (b"token=%ff%00", forms, 403),
                (b"token=x", f"{forms}; charset=none-such", 400),
                (b"{}", "application/json", 415),
                (b"--x\r\nnothing", "multipart/form-data; boundary=x", 415),
            ]:
                async with session.post(url, data=body, headers={"Content-Type": kind}) as response:
                    assert response.status == status, (body, kind)
            for path_ in ("assets/../app.py", "assets/viewer.js", "assets/item.html.jinja", "labels"):
                async with session.get(url + path_) as response:
                    assert response.status == 404
            assert path.read_text() == ""
            assert await posted({**fields, "do": "undo"}) == 303
            assert await posted(good, Origin=url.rstrip("/")) == 303
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            assert [(row["item"], row["label"], row["rater"]) for row in rows] == [
                (fields["item"], "supported", "ann")
            ]
    finally:
        await desk.stop()


def test_table_comes_back_as_labels(tmp_path: Path) -> None:
    judged = example("healthbench", tmp_path)
    run, sheet = tmp_path / "run", tmp_path / "labels.csv"
    number = write_sheet(str(run), str(sheet), 6, "ann")
    verdicts = {item.id: item for item in judged.items}
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert number == len(rows) == 6
    assert all(row["passage"] and row["label"] == "" and row["rater"] == "ann" for row in rows)
    assert not {"system", "task_id", "outcome"} & rows[0].keys()
    for row in rows:
        row["label"] = verdicts[row["item"]].labelled.label
    with sheet.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.DictWriter(file, rows[0].keys())
        table.writeheader()
        table.writerows(rows)
    found = with_labels(run, sheet)
    assert sum(one.n_items for one in found) == 6 and all(
        one.accuracy == 1.0 and one.weighed for one in found
    )
    with pytest.raises(UsageError, match=r"out: .*labels\.csv already exists; choose a new file"):
        write_sheet(str(run), str(sheet), 6, "ann")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "|"])
def test_cell_is_never_a_formula(start: str) -> None:
    assert cell(f"{start}HYPERLINK()") == f"'{start}HYPERLINK()"
    assert len(cell(start * 10**6)) < 32_767
    assert "\0" not in cell("a\0b")


def test_run_without_verdicts_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = made_run(tmp_path / "run", ["a"], 2)
    record = RunRecord.read(run)
    config = msgspec.structs.replace(record.config, store=str(tmp_path / "store"))
    msgspec.structs.replace(record, config=config).write(run)
    (tmp_path / "store").mkdir()
    code, _, error = command(capsys, "label", run, "--out", tmp_path / "l.jsonl")
    assert code == 2 and "no verdicts that people can label" in one_line(error)
    code, _, error = command(capsys, "label", run, "--out", tmp_path / "l.jsonl", "--overlap", "2")
    assert code == 2 and "not a number from 0 to 1" in one_line(error)
