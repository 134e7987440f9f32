"""NeMo-Gym: what a resources server's `verify` does; the remote form is `/verify` of `adjudge serve`.

    class Reports(SimpleResourcesServer):
        async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
            return BaseVerifyResponse(**await verify(body.model_dump(mode="json")))

A failed reward raises; with a number as `on_failure`, that is the reward and the sample is masked (`mask_sample`).
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from adjudge.engine.adapters.source import Source, number, open_source
from adjudge.engine.config.reward import Constant
from adjudge.engine.serving.dialects import Verification, verification_item, verified

__all__ = ["verify"]


async def verify(
    body: Mapping[str, Any],
    *,
    source: Source = None,
    deadline: float | None = None,
    on_failure: str | float = "raise",
) -> dict[str, Any]:
    """The request with its `reward`. Raises RewardError for a failed one, unless `on_failure` is a number."""
    item = verification_item(msgspec.convert(dict(body), Verification))
    (reward,) = await open_source(source).score([item], deadline=deadline)
    return {**body, **verified(reward, Constant(number(reward, on_failure)))}
