"""A judge that answers every question of any type: some answer that fits, the same for the same question and seed."""

import json
from collections.abc import Mapping
from hashlib import blake2b
from random import Random
from typing import Any

from adjudge.judges import Question, ScriptedJudge
from adjudge.judges.schema import schema_of

WORDS = ("trams", "buses", "cost", "less", "than", "in", "2021", "cities")


def random_judge(seed: int, failing: float = 0.0, reason: str = "judge_timeout") -> ScriptedJudge:
    """A judge with opinions drawn by `seed`, that fails by `reason` for the share `failing` of the questions."""

    def opinion(question: Question[Any]) -> str:
        digest = blake2b(question.identity(), key=str(seed).encode(), digest_size=8).digest()
        random = Random(digest)
        if random.random() < failing:
            return reason
        return json.dumps(drawn(schema_of(question, analysis=False), random))

    return ScriptedJudge(opinion)


def drawn(schema: Mapping[str, Any], random: Random) -> Any:
    """Some value that fits `schema`."""
    if "enum" in schema:
        return random.choice(schema["enum"])
    match schema["type"]:
        case "object":
            return {name: drawn(kind, random) for name, kind in schema["properties"].items()}
        case "array":
            least = schema.get("minItems", 0)
            count = random.randint(least, max(least, min(schema["maxItems"], 3)))
            return [drawn(schema["items"], random) for _ in range(count)]
        case "boolean":
            return random.random() < 0.5
        case "integer" | "number":
            step = schema.get("multipleOf", 1)
            steps = round((schema["maximum"] - schema["minimum"]) / step)
            return schema["minimum"] + step * random.randint(0, steps)
        case _ if "pattern" in schema:
            return str(random.randint(1, 3))  # the number of a source
        case _:
            return " ".join(random.choices(WORDS, k=5))[: schema.get("maxLength", 100)]
