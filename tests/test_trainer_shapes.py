"""Adapters of trainers that are not installed here, on classes of the shape that their own files have."""

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from adjudge.engine.adapters import miles, slime, source, trl
from adjudge.engine.rewards.reward import RewardError
from adjudge.engine.rewards.tokens import masked
from tests.worlds import world

TEXT = "It states fact number 0. The measured value was 42 units."
PROMPT = "What is fact 1?"
REWARD = {"metric": "score_clipped", "deadline_s": 20}


@pytest.fixture(autouse=True)
def rewards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration that scores TEXT 0.8, in the environment."""
    path = world(tmp_path, reward=REWARD)
    monkeypatch.setenv(source.REWARDS, str(path))
    return path


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports an adapter while its trainer's modules are `names`, by their dotted paths."""

    def importing(adapter: str, **names: dict[str, Any]) -> ModuleType:
        for dotted, inside in names.items():
            path = dotted.replace("__", ".")
            for end in range(1, path.count(".") + 2):
                part = ".".join(path.split(".")[:end])
                monkeypatch.setitem(sys.modules, part, sys.modules.get(part) or ModuleType(part))
            vars(sys.modules[path]).update(inside)
        full = f"adjudge.engine.adapters.{adapter}"
        monkeypatch.delitem(sys.modules, full, raising=False)
        return importlib.import_module(full)

    yield importing
    for name in ("ms_swift", "skyrl", "open_instruct", "rllm", "tinker"):
        sys.modules.pop(f"adjudge.engine.adapters.{name}", None)


class AsyncORM:
    def __init__(self, args: Any = None, **kwargs: Any) -> None:
        self.args = args


async def test_ms_swift_never_gets_none(made: Any) -> None:
    """Its sum over functions makes 0 of a missing reward: the mean of the prompt's others stands in."""
    orms: dict[str, type] = {}
    made("ms_swift", swift__rewards={"AsyncORM": AsyncORM, "orms": orms})
    talk = [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": TEXT}]
    columns = {
        "task_id": ["1", "no", "1"],
        "solution": ["", "", ""],
        "trainer_state": SimpleNamespace(global_step=3),
    }
    reward = orms["adjudge"](args=None)
    assert await reward(
        [TEXT, TEXT, ""], messages=[talk, talk, [*talk[:1], {"role": "assistant"}]], **columns
    ) == [
        pytest.approx(0.8),
        pytest.approx(0.4),
        0.0,
    ]
    assert await reward([TEXT], task_id=["1"]) == [0.8]
    with pytest.raises(RewardError, match="task_unknown"):
        await reward([TEXT], task_id=["no"])


@pytest.mark.parametrize(("found", "lines"), [("1.5.2", 1), ("1.6.0", 0), ("own", 0)])
async def test_old_trl_is_named_once(found: str, lines: int, monkeypatch: Any, caplog: Any) -> None:
    monkeypatch.setattr(trl, "version", lambda name: found)
    trl._say_unless_neutral.cache_clear()
    for _ in range(3):
        assert await trl.async_reward([PROMPT], [TEXT], task_id=["no"]) == [None]
    assert sum("group_mean" in line for line in caplog.messages) == lines


class BaseTextEnv:
    def __init__(self) -> None:
        self.turns = 0


def test_skyrl_environment_ends_with_its_reward(made: Any) -> None:
    module = made(
        "skyrl", skyrl_gym__envs__base_text_env={"BaseTextEnv": BaseTextEnv, "BaseTextEnvStepOutput": dict}
    )
    env = module.ReportEnv(None, {"reward_spec": {"ground_truth": "1"}})
    assert env.init([{"role": "user", "content": "?"}]) == ([{"role": "user", "content": "?"}], {})
    done = env.step(TEXT)
    assert (done["reward"], done["done"], done["observations"]) == (0.8, True, [])
    assert env.get_metrics()["score_clipped"] == 0.8 and done["metadata"]["adjudge"]["reason"] is None
    by_prompt = module.ReportEnv()
    by_prompt.init([{"role": "user", "content": PROMPT}])
    assert by_prompt.step(TEXT)["reward"] == 0.8
    with pytest.raises(RewardError, match="task_unknown"):
        module.ReportEnv(None, {"task_id": "no"}).step(TEXT)


class VerifierFunction:
    def __init__(self, name: str, weight: float = 1.0, verifier_config: Any = None) -> None:
        self.name, self.weight, self.verifier_config = name, weight, verifier_config


@dataclass
class VerificationResult:
    score: float
    cost: float = 0.0
    reasoning: str | None = None


async def test_open_instruct_builds_and_calls_the_verifier(made: Any) -> None:
    truth = {
        "VerifierFunction": VerifierFunction,
        "VerificationResult": VerificationResult,
        "VerifierConfig": object,
    }
    made("open_instruct", open_instruct__ground_truth_utils=truth)
    (kind,) = VerifierFunction.__subclasses__()
    verifier = kind(None)
    assert verifier.name == "adjudge"
    given = {
        "tokenized_prediction": [1],
        "prediction": TEXT,
        "label": "1",
        "query": "?",
        "rollout_state": None,
    }
    assert (await verifier.async_call(**given)).score == verifier(**given).score == 0.8
    asked = {
        **given,
        "label": None,
        "query": f"<|im_start|>user\n{PROMPT}<|im_end|>\n<|im_start|>assistant\n",
    }
    assert (await verifier.async_call(**asked)).score == 0.8
    with pytest.raises(RewardError, match="task_unknown"):
        await verifier.async_call(**{**given, "label": "no"})


@dataclass
class RewardOutput:
    reward: float
    metadata: dict[str, Any] = field(default_factory=dict)
    is_correct: bool | None = None


def test_rllm_function_takes_texts_and_actions(made: Any) -> None:
    module = made("rllm", rllm__rewards__reward_types={"RewardOutput": RewardOutput})
    assert module.reward({"question": PROMPT, "ground_truth": None}, TEXT).reward == 0.8
    found = module.reward({"task_id": 1}, SimpleNamespace(action=TEXT))
    assert found.reward == 0.8 and found.metadata["adjudge"]["scores"]["score_clipped"] == 0.8
    with pytest.raises(RewardError, match="task_unknown"):
        module.reward({"ground_truth": "no"}, TEXT)


class Renderer:
    def build_generation_prompt(self, messages: list[dict[str, str]]) -> str:
        return messages[-1]["content"]

    def get_stop_sequences(self) -> list[int]:
        return [0]

    def parse_response(self, action: list[int]) -> tuple[str, Any]:
        return TEXT, SimpleNamespace(is_clean=action[-1] == 0)


async def test_tinker_scores_whole_groups(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"Env": object, "EnvGroupBuilder": object, "StepResult": SimpleNamespace}
    module = made(
        "tinker",
        tinker={"ModelInput": SimpleNamespace(empty=lambda: None)},
        tinker_cookbook__renderers={"get_text_content": str},
        tinker_cookbook__rl__types=kinds,
    )
    builder = module.ReportGroupBuilder(Renderer(), PROMPT, 2)
    envs = await builder.make_envs()
    assert await envs[0].initial_observation() == (PROMPT, [0])
    steps = [await env.step(action) for env, action in zip(envs, ([5, 0], [5, 6]), strict=True)]
    assert [(step.reward, step.episode_done) for step in steps] == [(0.0, True)] * 2
    (whole, scores), (cut, _) = await builder.compute_group_rewards([], envs)
    assert (whole, cut, scores["score_clipped"]) == (0.8, 0.0, 0.8), "one without an end is truncated"
    unknown = module.ReportGroupBuilder(Renderer(), "?", 2, {"task_id": "no"})
    with pytest.raises(RewardError, match="task_unknown"):
        await unknown.compute_group_rewards([], envs)


async def test_slime_pays_what_its_loss_mask_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool's result between two turns is not the policy's, though no mark in the text says so."""
    words = ["<prompt>", "I search. ", "It states fact number 0. ", "Nothing was found."]
    tokenizer = SimpleNamespace(decode=lambda tokens: "".join(words[one] for one in tokens))
    monkeypatch.setattr(slime, "_tokenizer", lambda checkpoint: tokenizer)
    sample = SimpleNamespace(
        prompt=PROMPT,
        response="".join(words[1:]),
        label=None,
        metadata={},
        weight_versions=[],
        remove_sample=False,
    )
    sample.status = SimpleNamespace(value="completed")
    sample.tokens, sample.loss_mask = [0, 1, 2, 3], None
    arguments = SimpleNamespace(hf_checkpoint="policy")
    assert await slime.reward(arguments, sample) > 0
    sample.loss_mask = [1, 0, 1]
    assert await slime.reward(arguments, sample) == 0.0
    assert masked([1, 2, 3], [1, 0, 1], tokenizer.decode)[1] == [(0, 10), (35, 53)]


@pytest.mark.parametrize("state", ["aborted", "failed", "truncated"])
async def test_unfinished_samples_are_no_reports(state: str) -> None:
    assert miles.reward is slime.reward
    sample = SimpleNamespace(
        prompt=PROMPT, response=TEXT, label=None, metadata={}, weight_versions=[], remove_sample=False
    )
    sample.status = SimpleNamespace(value="completed")
    assert await miles.reward(None, [sample]) == [0.8]
    sample.status = SimpleNamespace(value=state)
    assert await miles.reward(None, sample) == 0.0
    assert sample.metadata["adjudge"]["reason"] == "truncated"
