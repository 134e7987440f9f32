"""A judge that answers every question of any type: some answer that fits, the same for the same question and seed.

A question in a benchmark's own words is answered with its example, verdicts and figures drawn anew.
"""

import json
import re
from collections.abc import Mapping
from hashlib import blake2b
from random import Random
from typing import Any

import msgspec

from adjudge.judges import Question, ScriptedJudge
from adjudge.judges.published import PublishedQuestion
from adjudge.judges.schema import schema_of
from adjudge.scoring.deepresearch_bench.published_fact import PublishedExtract
from adjudge.scoring.dr3_eval.published import PublishedCompactRecall, PublishedDepth

WORDS = ("trams", "buses", "cost", "less", "than", "in", "2021", "cities")


def random_judge(seed: int, failing: float = 0.0, reason: str = "judge_timeout") -> ScriptedJudge:
    """A judge with opinions drawn by `seed`, that fails by `reason` for the share `failing` of the questions.

    A question that is asked again fails again, or has the same answer; so does one that is asked in other words.
    """

    def opinion(question: Question[Any]) -> str:
        if isinstance(question, PublishedQuestion):
            question = msgspec.structs.replace(question, attempt=0)
        same = question.identity()
        if isinstance(question, PublishedCompactRecall):
            same = f"{question.context}\n{question.insights_list}".encode()
        if isinstance(question, PublishedDepth):
            same = f"{question.context}\n{question.dr_question}".encode()
        digest = blake2b(same, key=str(seed).encode(), digest_size=8).digest()
        random = Random(digest)
        if random.random() < failing:
            return reason
        if isinstance(question, PublishedExtract):
            return json.dumps([_cited(random) for _ in range(random.randint(0, 9))])
        if isinstance(question, PublishedQuestion):
            return redrawn(question.example(), random)
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


_DEPTH = re.compile(r"(?<=<score>)\d+")
_NAMED = ("id", "idx", "ref_idx", "weight")


def _cited(random: Random) -> dict[str, Any]:
    fact, url = random.choice("abcdef"), random.choice("uvwxyz")
    return {"fact": f"Fact {fact} of trams.", "ref_idx": 1, "url": f"https://{url}.example/"}


def redrawn(example: str, random: Random) -> str:
    """An example of a reply with other verdicts and figures, at most as high; or with nothing in it."""
    if example in ("True", "true"):
        return random.choice(("True", "False"))
    try:
        found = json.loads(example)
    except ValueError:
        return example
    if isinstance(found, dict) and all(isinstance(one, str) for one in found.values()):
        if "match" in found:
            return random.choice((example, '{"match": null}'))
        if "text" not in found:
            return random.choice((example, "{}"))
    return _DEPTH.sub(lambda _: str(random.randint(1, 10)), json.dumps(_redrawn(found, random)))


def _redrawn(value: Any, random: Random) -> Any:
    match value:
        case dict():
            return {name: one if name in _NAMED else _redrawn(one, random) for name, one in value.items()}
        case list() if all(isinstance(one, int) for one in value):
            return [one for one in value if random.random() < 0.8]
        case list():
            return [_redrawn(one, random) for one in value]
        case bool():
            return random.random() < 0.5
        case int():
            return random.randint(0, value)
        case float():
            return value * random.choice((0, 0.5, 1))
        case "supported":
            return random.choice(("supported", "unsupported", "unknown"))
        case _:
            return value
