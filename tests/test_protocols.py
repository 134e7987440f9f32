"""What holds for every protocol: how its metrics are shown, and the wording and language of its questions."""

from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.formats.dataset import load_dataset
from adjudge.fetchers.page import Page
from adjudge.fetchers.urls import NormalURL
from adjudge.judges import Context, LexicalJudge
from adjudge.scoring.contract.protocol import Explaining, ScoringProtocol, prefixed, score_case
from adjudge.scoring.deepresearch_bench.fact_questions import Repeats
from adjudge.scoring.deepresearch_bench.yardstick import average_weights, static_criteria
from adjudge.scoring.dr3_eval.questions import ChecklistOf, Recall
from adjudge.scoring.text.citation_marks import cut
from tests.examples import shipped
from tests.tools import DirectTools, page

# What a leaderboard ranks by, and what is shown beside it in other units; everything else is a share, shown in per
# cent where the papers' tables do.
HEADLINES = {
    "draco": ["score"],
    "dr3": ["average"],
    "drb2": ["total"],
    "drmi": ["plan_f1", "retrieval_accuracy", "reasoning_accuracy"],
    "fact": ["c_acc"],
    "healthbench": ["score"],
    "livedr": ["f1"],
    "race": ["overall"],
    "researchrubrics": ["score"],
    "rigorous": ["integrated"],
    "rler": ["rubric_reward"],
    "rubrics": ["score"],
}
IN_PER_CENT = {"draco", "dr3", "drb2", "drmi", "fact", "race", "researchrubrics"}
COUNTS = {
    "dr3": ("cited", "cited:", "pairs:", "supported:"),
    "fact": (
        "e_cit",
        *("pairs", "supported", "unsupported", "unknown", "unreachable", "unscored", "judged", "cited"),
        *("statements", "addresses", "distinct_pages", "echoes", "citations_per_statement"),
        *("marks", "disputed"),
    ),
    "race": ("total",),
}


def protocol_named(name: str) -> ScoringProtocol:
    (found,) = entry_points(group="adjudge.protocols", name=name)
    made: ScoringProtocol = found.load()()
    return made


@pytest.mark.parametrize("name", HEADLINES)
def test_metrics_are_shown_as_the_papers_show_them(name: str) -> None:
    metrics = protocol_named(name).metrics
    assert [metric.name for metric in metrics if metric.headline] == HEADLINES[name]
    for metric in metrics:
        counts = metric.name in ("read", "lost") or metric.name.startswith(
            COUNTS.get(name, ("no such name",))
        )
        assert metric.scale == (100 if name in IN_PER_CENT and not counts else 1), metric.name


def test_fact_shows_rates_and_not_counts() -> None:
    shown = [metric.name for metric in protocol_named("fact").metrics if metric.shown]
    assert shown == ["c_acc", "e_cit", "c_acc_code", "e_cit_code"]


class Everywhere(DirectTools):
    """Every page can be read and says the same."""

    async def page(self, address: NormalURL) -> Page:
        return page(address, "The new line opened in 2021 and carried 4 million passengers. " * 10)


@pytest.mark.parametrize(
    "example",
    [
        *("quickstart", "rubrics", "rigorous", "livedrbench", "dr3", "drmi", "draco", "researchrubrics"),
        *("healthbench", "deepresearch-bench-2"),
    ],
)
async def test_questions_use_the_task_language_and_evidence_names_them(
    example: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shipped(example))
    config = RunConfig.load("adjudge.yaml")
    dataset = load_dataset(config.format, config.tasks, config.reports)
    tools = Everywhere(LexicalJudge())
    told: set[str] = set()
    for case in dataset.cases():
        chinese = msgspec.structs.replace(case, task=msgspec.structs.replace(case.task, language="zh"))
        for protocol in config.resolved.protocols:
            card = await score_case(protocol, chinese, tools)
            assert card.protocol == protocol.name
            asked = {question.identity()[:16].hex() for question in tools.questions}
            assert {line.judgment for line in card.evidence} <= asked | {""}
            told |= {line.judgment for line in card.evidence} - {""}
    assert told
    assert {(type(question).__name__, question.language) for question in tools.questions} == {
        (type(question).__name__, "zh") for question in tools.questions
    }


@pytest.mark.parametrize(
    ("example", "whole"),
    [
        *(("draco", 1.0), ("researchrubrics", 1.0), ("healthbench", 1.0), ("deepresearch-bench-2", 1.0)),
        *(("quickstart", 1.0), ("rigorous", 1.0), ("rubrics", 1.0), ("liveresearchbench", 0.5), ("dr3", 0.5)),
    ],
)
async def test_explained_criteria_are_lines_of_evidence(
    example: str, whole: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shipped(example))
    config = RunConfig.load("adjudge.yaml")
    case = next(iter(load_dataset(config.format, config.tasks, config.reports, date=config.date).cases()))
    protocol = next(one for one in config.resolved.protocols if isinstance(one, Explaining))
    tools = Everywhere(LexicalJudge())
    explained = await protocol.explained(case, tools)
    card = await score_case(protocol, case, tools)
    assert {one.what for one in explained} <= {line.what for line in card.evidence}
    assert sum(max(0.0, one.weight or 0.0) for one in explained) == pytest.approx(whole)


@pytest.mark.parametrize("name", HEADLINES)
def test_expected_ratios_pool_expected_scores(name: str) -> None:
    metrics = {metric.name: metric for metric in prefixed(protocol_named(name), "expected.").metrics}
    pooled = [metric for metric in metrics.values() if metric.ratio is not None]
    assert bool(pooled) == (name in ("dr3", "fact", "livedr"))
    assert all(part in metrics for metric in pooled for part in metric.ratio or ())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_general_criteria_weights_sum_to_one(language: str) -> None:
    for criteria in static_criteria(language).values():
        assert len(criteria) == 5 and sum(one.weight for one in criteria) == pytest.approx(1)


@pytest.mark.parametrize(
    ("draws", "weights"),
    [
        ([(40, 30, 20, 10)], (0.4, 0.3, 0.2, 0.1)),
        ([(1, 1, 1, 0), (3, 1, 1, 4)], (0.33, 0.17, 0.17, 0.33)),
        ([(2, 2, 2, 1)], (0.29, 0.29, 0.29, 0.13)),
    ],
)
def test_dimension_weights_average_with_remainder_to_the_last(
    draws: Sequence[tuple[float, ...]], weights: tuple[float, ...]
) -> None:
    names = ("comprehensiveness", "insight", "instruction_following", "readability")
    found = average_weights([dict(zip(names, draw, strict=True)) for draw in draws])
    assert tuple(found[name] for name in names) == pytest.approx(weights)


# Answers of the lexical judge


def test_statement_is_a_repeat_of_one_before_it() -> None:
    first, second = Repeats.about(["Trams grew.", "Buses fell.", "trams  grew", "Buses rose."], "en", size=2)
    assert list(first.lexical().items.values()) == ["new", "new"]
    assert list(second.lexical().items.values()) == ["repeat", "new"]


def test_insight_is_recalled_fully_partly_or_not() -> None:
    question = Recall(
        context=Context.of(report="Tram ridership grew by 12 per cent after the new line opened in Lyon."),
        language="en",
        task="How did tram ridership develop?",
        insights=(
            "Tram ridership grew by 12 per cent in Lyon.",
            "Tram ridership grew after a costly fuel reform.",
            "Cheese exports fell.",
        ),
    )
    assert list(question.lexical().recalled.values()) == [1.0, 0.5, 0.0]


def test_requirements_extracted_from_a_task_are_short() -> None:
    question = ChecklistOf(context=Context.of(task="x" * 1_000), language="en")
    assert question.lexical().requirements == ("x" * 300,)


def test_text_that_fits_is_not_cut() -> None:
    assert cut("aaaaaaa\nbb", 10) == ["aaaaaaa\nbb"]
    assert "".join(cut("aaaaaaa\nbbb", 10)) == "aaaaaaa\nbbb"
    assert cut("aaaaaaa\nbbb", 10)[0] in ("aaaaaaa", "aaaaaaa\n")


def test_min_answered_and_fetch_off_reach_protocols() -> None:
    entries = ["rubrics", {"name": "dr3", "min_answered": 0.5}, {"name": "race", "min_answered": 0.5}, "fact"]
    config = RunConfig.of({"tasks": "t", "protocols": entries, "min_answered": 0.9, "fetch": {"mode": "off"}})
    rubrics, dr3, race, fact = config.resolved.protocols
    assert (rubrics.min_answered, dr3.min_answered, fact.pages) == (0.9, 0.5, False)
    assert not hasattr(race, "min_answered")
    (rubrics, fact) = RunConfig.of({"tasks": "t", "protocols": ["rubrics", "fact"]}).resolved.protocols
    assert (rubrics.min_answered, fact.pages) == (0.8, True)
    for bad in (0, 1.1, "most"):
        with pytest.raises(ConfigError, match="min_answered"):
            RunConfig.of({"tasks": "t", "min_answered": bad})


def test_run_without_pages_scores_no_citation_and_says_why(tmp_path: Path) -> None:
    folders = {"out": str(tmp_path / "run"), "store": str(tmp_path / "store")}
    config = RunConfig.load(shipped("quickstart") / "adjudge.yaml", fetch={"mode": "off"}, **folders)
    evaluate(config)
    rows = pq.read_table(tmp_path / "run" / "scores.parquet").to_pylist()
    accuracies = [row for row in rows if row["metric"] == "c_acc" and row["parts"] > 1]
    assert accuracies
    for row in accuracies:
        assert (row["value"], row["low"], row["high"], row["answered"]) == (None, 0, 1, 0)
        assert row["reason"] == "pages_off"
    assert not any(row["value"] for row in rows if row["metric"] in ("c_acc", "c_acc_distinct", "supported"))
