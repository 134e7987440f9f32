"""Scoring by expectation: configured, refused where unsupported, and kept under separate names."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from adjudge.engine.config.judge import JudgeConfig
from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.evaluation.assembly import make_judge
from adjudge.judges import LexicalJudge
from adjudge.prompts import PromptBook
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.protocol import CaseMetrics, prefixed, score_case
from adjudge.scoring.deepresearch_bench.race import Race
from adjudge.scoring.rubrics.rubrics import Rubrics
from tests.tools import DirectTools
from tests.worlds import CRITERIA

GOLD = {"rubrics": msgspec.Raw(msgspec.json.encode(CRITERIA))}
TASK = Task(id="1", prompt="What is fact 1?", gold=GOLD)


def case(text: str, task: Task = TASK) -> Case:
    return Case(task=task, report=Report(task_id="1", system="a", text=text))


def scored(protocol: object, of: Case) -> object:
    return asyncio.run(score_case(protocol, of, DirectTools(LexicalJudge())))


@pytest.mark.parametrize("text", ["The report names fact number 1.", ""])
def test_expected_scores_are_the_same_under_other_names(text: str) -> None:
    sampled, by_expectation = (
        scored(Rubrics(), case(text)),
        scored(prefixed(Rubrics(), "expected."), case(text)),
    )
    assert by_expectation.scores == {f"expected.{name}": value for name, value in sampled.scores.items()}
    assert by_expectation.protocol == "rubrics"
    assert by_expectation.reason == sampled.reason


def test_reasons_of_missing_scores_are_kept() -> None:
    card = scored(prefixed(Rubrics(), "expected."), case("text", Task(id="1", prompt="?")))
    assert set(card.reasons) == set(card.scores)
    assert set(card.reasons.values()) == {"gold_missing"}


def test_metrics_keep_all_but_their_names() -> None:
    for protocol in (Rubrics(), Race()):
        pairs = list(zip(protocol.metrics, prefixed(protocol, "expected.").metrics, strict=True))
        assert all(new.name == f"expected.{old.name}" for old, new in pairs)
        assert all(msgspec.structs.replace(new, name=old.name, ratio=old.ratio) == old for old, new in pairs)
        assert isinstance(prefixed(protocol, "expected."), CaseMetrics) == isinstance(protocol, CaseMetrics)


def test_expected_scoring_prefixes_metric_names() -> None:
    raw = {"tasks": "t", "protocols": ["rubrics"], "reward": {"weights": {"expected.score": 1}}}
    judge = {"backend": "vllm", "model": "org/model", "scoring": "expected"}
    config = RunConfig.of({**raw, "judge": judge})
    assert config.resolved.protocols[0].metrics[0].name == "expected.score"
    panel = {"backend": "panel", "members": [judge, "lexical"]}
    assert RunConfig.of({**raw, "judge": panel}).resolved.bench.default.prefix == "expected."
    with pytest.raises(ConfigError, match=r"expected\.score"):
        RunConfig.of({**raw, "judge": "lexical"})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"backend": "vllm"}, "needs model:"),
        ({"backend": "vllm", "model": "m", "thinking": True}, "neither thinking nor media"),
        ({"backend": "vllm", "model": "m", "media": ["image"]}, "neither thinking nor media"),
        (
            {"backend": "openai", "url": "http://h/v1", "model": "m", "scoring": "expected"},
            "needs backend vllm",
        ),
    ],
)
def test_unsupported_backend_setting_is_an_error(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_judge(msgspec.convert(settings, JudgeConfig), PromptBook())


def test_model_path_is_relative_to_the_configuration(tmp_path: Path) -> None:
    assert JudgeConfig.from_spec("vllm:org/model") == JudgeConfig(backend="vllm", model="org/model")
    (tmp_path / "models" / "tiny").mkdir(parents=True)
    file = tmp_path / "adjudge.yaml"
    for judge, model in (
        ("vllm:models/tiny", str(tmp_path / "models/tiny")),
        ("{backend: vllm, model: models/tiny}", str(tmp_path / "models/tiny")),
        ("vllm:org/model", "org/model"),
    ):
        file.write_text(f"tasks: t\nprotocols: [rubrics]\njudge: {judge}\n")
        assert RunConfig.load(file).resolved.bench.default.model == model
    with pytest.raises(ConfigError, match="unknown judge"):
        JudgeConfig.from_spec("vllm:")
