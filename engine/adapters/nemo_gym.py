"""NeMo-Gym: a resources server; the remote form is `/verify` of `adjudge serve`.

    entrypoint: adjudge/engine/adapters/nemo_gym.py      in a resources server's configuration, beside `source:`

A failed reward is a JudgeError: NeMo-Gym puts the row among the failures, outside its metrics, to be tried again.
"""

from typing import Any

import msgspec
from nemo_gym.base_resources_server import (  # type: ignore[import-not-found]
    BaseResourcesServerConfig,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from nemo_gym.judge import JudgeError  # type: ignore[import-not-found]
from pydantic import ConfigDict

from adjudge.engine.adapters.source import number, open_source, seconds
from adjudge.engine.rewards.reward import RewardError
from adjudge.engine.serving.dialects import Verification, verification_item

__all__ = ["ReportRequest", "ReportResponse", "ReportServer", "ReportServerConfig"]


class ReportServerConfig(BaseResourcesServerConfig):  # type: ignore[misc]
    """Where rewards come from (ADJUDGE_REWARDS if it is not set here), and in how many seconds."""

    source: str | None = None
    deadline: float | None = None


class ReportRequest(BaseVerifyRequest):  # type: ignore[misc]
    """A row with all its fields: `task_id` or `verifier_metadata.task_id` names its task, else its prompt does."""

    model_config = ConfigDict(extra="allow")


class ReportResponse(BaseVerifyResponse):  # type: ignore[misc]
    """The row, its reward, and every metric as a separate number, which NeMo-Gym aggregates."""

    model_config = ConfigDict(extra="allow")


class ReportServer(SimpleResourcesServer):  # type: ignore[misc]
    """Scores the reports of policies."""

    config: ReportServerConfig

    async def verify(self, body: ReportRequest) -> Any:
        """The row with its reward, a ReportResponse. Raises JudgeError for a failed one."""
        row: dict[str, Any] = body.model_dump(mode="json")
        item = verification_item(msgspec.convert(row, Verification))
        try:
            (reward,) = await open_source(self.config.source).score(
                [item], deadline=seconds(self.config.deadline)
            )
            value = number(reward, "raise")
        except RewardError as error:
            raise JudgeError(str(error)) from error
        told = {"adjudge_reason": reward.reason, "adjudge_parts": msgspec.to_builtins(reward.parts)}
        return ReportResponse.model_validate({**row, **reward.scores, **told, "reward": value})


if __name__ == "__main__":
    ReportServer.run_webserver()
