"""verl: a reward manager that keeps tokens, so that it is known what of a response the policy wrote.

    reward.reward_manager.source=importlib
    reward.reward_manager.module.path=pkg://adjudge.engine.adapters.verl_manager
    reward.reward_manager.name=ReportManager

beside the reward function `compute_score` of `adjudge.engine.adapters.verl`. verl's own managers skip special tokens,
and with them what tells thoughts, calls of tools and their results from the report.
"""

from typing import Any

from verl import DataProto  # type: ignore[import-not-found]
from verl.experimental.reward_loop.reward_manager.base import (  # type: ignore[import-not-found]
    RewardManagerBase,
)

from adjudge.engine.rewards.tokens import masked

__all__ = ["ReportManager"]


class ReportManager(RewardManagerBase):  # type: ignore[misc]
    """Gives the reward function the text with special tokens, and its `mask` where the batch has a `response_mask`.

    A response as long as verl lets one be, and without an end, is truncated.
    """

    def __init__(
        self,
        config: Any,
        tokenizer: Any,
        compute_score: Any,
        reward_router_address: str | None = None,
        reward_model_tokenizer: Any = None,
    ) -> None:
        super().__init__(config, tokenizer, compute_score)

    async def run_single(self, data: DataProto) -> dict[str, Any]:
        """The reward of the last sequence, and what the reward function says of it. Raises TrainingStop."""
        one = data[-1:][0]
        row = one.non_tensor_batch
        responses = one.batch["responses"]
        length = int(one.batch["attention_mask"][-responses.shape[-1] :].sum())
        tokens = responses[:length].tolist()
        given = one.batch.get("response_mask", None)
        mask = None if given is None else given[:length].tolist()
        extra = {**(row.get("extra_info") or {}), **(row.get("tool_extra_fields") or {})}
        text, spans = await self.loop.run_in_executor(None, self._read, tokens, mask)
        found = await self.compute_score(
            data_source=row["data_source"],
            solution_str=text,
            ground_truth=row["reward_model"]["ground_truth"],
            extra_info={**extra, "truncated": extra.get("truncated") is True or self._is_cut(tokens)},
            mask=spans,
        )
        return {"reward_score": found["score"], "reward_extra_info": dict(found)}

    def _read(self, tokens: list[int], mask: list[int] | None) -> tuple[str, list[tuple[int, int]] | None]:
        if mask is None:
            return self.tokenizer.decode(tokens), None
        return masked(tokens, mask, self.tokenizer.decode)

    def _is_cut(self, tokens: list[int]) -> bool:
        most = self.config.actor_rollout_ref.rollout.response_length
        return bool(tokens) and len(tokens) >= most and tokens[-1] != self.tokenizer.eos_token_id
