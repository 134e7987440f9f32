"""`adjudge agreement --claims`: claims that were extracted against people's."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.statistics.extraction import same_claims, with_claims
from tests.worlds import lines

SAID = ("The weir was built in 1911", "The mill closed in 1950")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of FACT with a report of two statements that cite, and one of none."""
    lines(tmp_path / "tasks.jsonl", [{"id": "1", "prompt": "Why is there a weir?"}])
    cited = " ".join(f"{said} [w](https://a.example/{n})." for n, said in enumerate(SAID))
    reports = [
        {"task_id": "1", "system": system, "text": text}
        for system, text in (("cites", cited), ("bare", "Nothing is cited here at all."))
    ]
    lines(tmp_path / "reports.jsonl", reports)
    config = {
        "tasks": "tasks.jsonl",
        "reports": ["reports.jsonl"],
        "protocols": [{"name": "fact", "extraction": "markers"}],
        "fetch": "off",
        "store": "store",
        "out": "run",
    }
    (tmp_path / "adjudge.yaml").write_text(json.dumps(config))
    evaluate(RunConfig.load(str(tmp_path / "adjudge.yaml")))
    return tmp_path / "run"


def claims(run: Path, **by_system: list[str]) -> Path:
    rows = [
        {"task_id": "1", "system": system, "claim": claim}
        for system, own in by_system.items()
        for claim in own
    ]
    return lines(run / "claims.jsonl", rows)


def test_precision_and_recall_by_system_and_of_all(run: Path) -> None:
    people = [f"{SAID[0]}.", "The weir is 3 metres high", "The weir feeds a turbine"]
    found = {
        one.system: one for one in with_claims(run, claims(run, cites=people, bare=["It cites nothing"]))
    }
    own, bare, all_ = found["cites"], found["bare"], found[""]
    assert (own.precision, own.recall, own.n_same) == (0.5, pytest.approx(1 / 3), 1)
    assert (bare.precision, bare.recall, bare.f1) == (None, 0.0, None)
    assert (all_.precision, all_.recall, all_.n_reports) == (0.5, 0.25, 2)


def test_claims_of_no_report_are_named(run: Path) -> None:
    [first, *_] = with_claims(run, claims(run, cites=[SAID[0]], gone=["Another"]))
    assert "gone on task 1" in first.left_out
    with pytest.raises(UsageError, match="comes from a report of this run"):
        with_claims(run, claims(run, gone=["Another"]))


SENTENCES = st.lists(st.sampled_from("red blue green slow fast mill weir".split()), min_size=1, max_size=6)


@given(st.lists(SENTENCES.map(" ".join), max_size=5), st.randoms())
def test_claims_pair_with_themselves_in_any_order(said: list[str], draw) -> None:
    mixed = [*said]
    draw.shuffle(mixed)
    assert same_claims(said, mixed) == len(said)
    assert same_claims(said, []) == same_claims([], said) == 0
