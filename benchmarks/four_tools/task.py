from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import solver


@solver
def given():
    async def solve(state, generate):
        state.output = ModelOutput.from_content("given", state.metadata["report"])
        return state

    return solve


@task
def reports():
    return Task(dataset=json_dataset("samples.jsonl"), solver=given(), scorer=model_graded_qa())
