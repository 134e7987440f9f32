"""A judge that costs nothing, in its own module so that a cluster's workers can import it."""

from typing import Any

import msgspec

from adjudge.judges import Question, ScriptedJudge
from adjudge.judges.schema import schema_of
from adjudge.prompts import PromptBook
from tests.mock_openai import valid


def scripted(book: PromptBook) -> ScriptedJudge:
    """A judge that answers at once, always the same for the same allowed points."""

    answers: dict[tuple[float, ...], str] = {}

    def opinion(question: Question[Any]) -> str:
        found = answers.get(question.options)
        if found is None:
            schema = schema_of(question, True)
            found = answers[question.options] = msgspec.json.encode(valid(schema, bytes(32))).decode()
        return found

    return ScriptedJudge(opinion)
