"""A taskset whose only task asks for a report, and a harness that asks the model once, in this process."""

import httpx
import verifiers.v1 as vf

from tests.trainers.rollouts import PROMPT


class ReportData(vf.TaskData):
    rubrics: list | None = None
    info: dict | None = None


class ReportTask(vf.Task[ReportData]): ...


class ReportTaskset(vf.Taskset[ReportTask, vf.TasksetConfig]):
    def load(self) -> list[ReportTask]:
        return [ReportTask(ReportData(idx=0, id="1", prompt=PROMPT), self.config.task)]


class AskOnce(vf.Harness[vf.HarnessConfig]):
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, *rest, **more):
        async with httpx.AsyncClient() as client:
            asked = {"model": ctx.model, "messages": [{"role": "user", "content": PROMPT}]}
            headers = {"Authorization": f"Bearer {secret}"}
            reply = await client.post(f"{endpoint}/chat/completions", json=asked, headers=headers)
            reply.raise_for_status()
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


__all__ = ["AskOnce", "ReportTaskset"]
