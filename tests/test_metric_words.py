"""What metrics are, in words: every metric of every protocol has a definition, a unit and a source."""

from collections import defaultdict

import msgspec
import pytest

from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.tables.standings import about_metric
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.protocol import installed_protocols, published_protocols
from adjudge.scoring.contract.scorecard import Metric, explained
from adjudge.scoring.deepresearch_bench.fact import Fact
from adjudge.scoring.rubrics.benchmarks import HealthBench
from adjudge.scoring.rubrics.criteria import Criterion
from adjudge.scoring.rubrics.figures import ByCriteria
from tests.made_runs import made_run

TAGGED = (
    Criterion(criterion="Says when.", points=3.0, tags=("a",)),
    Criterion(criterion="Invents.", points=-2.0, tags=("a",)),
)


def protocols():
    for name, load in installed_protocols():
        if load().__module__.startswith("adjudge."):
            yield name, load()()
    for name, load in published_protocols():
        yield f"published {name}", load()(checkout="none")


def metrics_of(protocol):
    """Its metrics, also those that it has for tagged criteria, a published set or an option alone."""
    found = list(protocol.metrics)
    if isinstance(protocol, Fact):
        found += msgspec.structs.replace(protocol, uncited=True).metrics
    if isinstance(protocol, ByCriteria):
        found += [one.metric for one in protocol.figures(TAGGED)]
    if isinstance(protocol, HealthBench):
        gold = {"rubrics": msgspec.Raw(msgspec.json.encode(TAGGED))}
        task = Task(id="1", prompt="How?", attributes={"set": "professional"}, gold=gold)
        found += protocol.metrics_of(Case(task=task, report=Report(task_id="1", system="s", text="So.")))
    return found


@pytest.mark.parametrize(("name", "protocol"), list(protocols()))
def test_every_metric_has_words(name, protocol):
    for metric in metrics_of(protocol):
        found = explained(protocol, metric)
        assert found.definition.endswith(".") and found.units and found.source, metric.name
        assert len(found.definition) < 250


def test_words_are_of_metrics_that_exist():
    """Under the protocol's own calls, the published ones, or with tags."""
    used, words = defaultdict(set), {}
    for name, protocol in protocols():
        name = name.removeprefix("published ")
        words[name] = protocol.words
        used[name] |= {protocol.words._found(metric.name)[0] for metric in metrics_of(protocol)}
    assert {
        name: set(said.of) - used[name] for name, said in words.items() if set(said.of) - used[name]
    } == {}


def test_words_of_a_form_add_to_those_of_its_metric():
    (livedr,) = [protocol for name, protocol in protocols() if name == "livedr"]
    plain, strict = (explained(livedr, Metric(name=name)) for name in ("f1", "f1_strict"))
    assert strict.definition.startswith(plain.definition) and strict.definition != plain.definition
    assert explained(livedr, Metric(name="unheard_of")).definition == ""
    assert explained(object(), Metric(name="f1")) == Metric(name="f1")


def test_leaderboard_carries_the_words(tmp_path):
    board = build_leaderboard([made_run(tmp_path, ("a", "b"), 6)])
    said = {one.metric: about_metric(one) for one in board.metrics}
    assert said["unreachable"].splitlines()[1:] == [
        "Unit: count.",
        "Lower is better.",
        "Source: DeepResearch Bench (FACT).",
    ]
    assert "Unit: per cent." in said["overall"] and "Higher is better." in said["overall"]
