"""open-instruct: a verifier by the name `adjudge`, which rows name in their column `dataset`.

    python -c "import adjudge.engine.adapters.open_instruct, runpy; runpy.run_path('open_instruct/grpo_fast.py', run_name='__main__')" ARGUMENTS

with ADJUDGE_REWARDS set: open-instruct takes every verifier that was imported before it builds them. It has no missing
rewards: a failed one raises, unless ADJUDGE_ON_FAILURE is a number.
"""  # noqa: E501 - a command

from collections.abc import Sequence
from typing import Any

from open_instruct.ground_truth_utils import (  # type: ignore[import-not-found]
    VerificationResult,
    VerifierConfig,
    VerifierFunction,
)

from adjudge.engine.adapters.source import number, open_source, parts_text, rollout, seconds
from adjudge.engine.rewards.reward import Reward, labelled

__all__ = ["ReportVerifier"]


class ReportVerifier(VerifierFunction):  # type: ignore[misc]
    """Scores a prediction; its label is the task's id or what it is judged by as JSON, else the query is its prompt."""

    def __init__(self, verifier_config: VerifierConfig | None = None) -> None:
        super().__init__("adjudge", verifier_config=verifier_config, weight=1.0)

    def __call__(
        self,
        tokenized_prediction: Sequence[int],
        prediction: str,
        label: object,
        query: str | None = None,
        rollout_state: dict[str, Any] | None = None,
    ) -> Any:
        """The result of one prediction. Raises RewardError for a failed reward."""
        item = rollout(prediction, prompt=query, row=labelled(label))
        (found,) = open_source(None).score_sync([item], deadline=seconds(None))
        return _result(found)

    async def async_call(
        self,
        tokenized_prediction: Sequence[int],
        prediction: str,
        label: object,
        query: str | None = None,
        rollout_state: dict[str, Any] | None = None,
    ) -> Any:
        """`__call__`, which those that come together share a request with."""
        item = rollout(prediction, prompt=query, row=labelled(label))
        (found,) = await open_source(None).score([item], deadline=seconds(None))
        return _result(found)


def _result(found: Reward) -> Any:
    return VerificationResult(score=number(found), reasoning=parts_text(found))
