"""Judges of known worth for planted controls: one that is always right about given material, and ones that are not."""

import json
import re
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

from adjudge.engine.trial.material import Material
from adjudge.judges import Question, ScriptedJudge
from adjudge.judges.schema import schema_of
from adjudge.scoring.answers.preferences import BetterOfTwo
from adjudge.scoring.deepresearch_bench.fact_questions import Backed
from adjudge.scoring.deepresearch_bench.race import ArticleMarks, PairMarks
from adjudge.scoring.dr3_eval.questions import ChecklistMet, Grounded, Recall
from adjudge.scoring.pairwise.pairwise import BetterReport
from adjudge.scoring.rubrics.asking import ExplainedItems, RubricItems, RubricPoints
from tests.random_judge import drawn

QUOTED = re.compile(r": (?=[A-Z])|：|\([12]\) |（[12]）")


def share_in(criterion: str, report: str) -> float:
    """How much of what a criterion quotes the report has."""
    quoted = [piece.strip() for piece in QUOTED.split(criterion)[1:] if piece.strip()]
    return sum(piece in report for piece in quoted) / len(quoted)


class Oracle:
    """Knows the right answer to any question that has controls, on `materials`."""

    def __init__(self, materials: Sequence[Material]) -> None:
        self._known = {one.task: one for one in materials}

    def worth(self, task: str, text: str) -> float:
        """How many of the statements of the known report on this task a text has, once each."""
        known = self._known[task]
        return sum(one.text in text for one in known.statements) / len(known.statements)

    def better(self, task: str, first: str, second: str) -> str:
        ahead = self.worth(task, first) - self.worth(task, second)
        return "tie" if not ahead else "first" if ahead > 0 else "second"

    def __call__(self, question: Question[Any]) -> str:
        """The right answer, as JSON."""
        keys = [f"c{place:02d}" for place in range(1, question.count + 1)]
        found: dict[str, Any]
        match question:
            case Backed():
                page = question.context["page"]
                says = ["supported" if one in page else "unsupported" for one in question.statements]
                found = {"items": dict(zip(keys, says, strict=True))}
            case Grounded():
                source = question.context["source"]
                says = ["supported" if one in source else "unsupported" for one in question.claims]
                found = {"verdicts": dict(zip(keys, says, strict=True))}
            case RubricPoints():
                found = {"points": round(share_in(question.criterion, question.context["report"]) * 3)}
            case RubricItems():
                shares = [share_in(one, question.context["report"]) for one in question.items]
                found = {"items": {key: {"level": 2 * one} for key, one in zip(keys, shares, strict=True)}}
            case ExplainedItems():
                shares = [share_in(one, question.context["report"]) for one in question.items]
                levels = zip(keys, shares, strict=True)
                found = {"items": {key: {"evidence": "", "level": 2 * one} for key, one in levels}}
            case ChecklistMet():
                met = [share_in(one, question.context["report"]) == 1 for one in question.requirements]
                found = {"met": dict(zip(keys, met, strict=True))}
            case Recall():
                shares = [share_in(one, question.context["report"]) for one in question.insights]
                found = {"recalled": dict(zip(keys, shares, strict=True))}
            case PairMarks():
                task = question.context["task"]
                texts = {"a": question.context["article_a"], "b": question.article_b}
                marks = {name: round(9 * self.worth(task, text)) for name, text in texts.items()}
                found = {"items": dict.fromkeys(keys, marks)}
            case BetterReport():
                context = question.context
                found = {"better": self.better(question.task, context["first"], context["second"])}
            case BetterOfTwo():
                found = {"better": self.better(question.task, question.context["report"], question.second)}
            case _:
                mark = {"mark": round(9 * self.worth(question.context["task"], question.context["article"]))}
                found = {"items": dict.fromkeys(keys, mark)} if isinstance(question, ArticleMarks) else mark
        return json.dumps(found)

    def erring(self, seed: int, share: float) -> ScriptedJudge:
        """A judge that answers `share` of the questions at random, and the others rightly."""
        random = Random(seed)

        def opinion(question: Question[Any]) -> str:
            if random.random() < share:
                return json.dumps(drawn(schema_of(question, analysis=False), random))
            return self(question)

        return ScriptedJudge(opinion)


def constant(last: bool, question: Question[Any]) -> str:
    """The first, or the last, of all answers to a question, as JSON."""

    def fitting(schema: Any) -> Any:
        if "enum" in schema:
            return schema["enum"][-1 if last else 0]
        match schema["type"]:
            case "object":
                return {name: fitting(kind) for name, kind in schema["properties"].items()}
            case "string":
                return ""
        return last

    return json.dumps(fitting(schema_of(question, analysis=False)))


def constant_judge(last: bool) -> ScriptedJudge:
    """A judge that says one thing to everything."""
    return ScriptedJudge(partial(constant, last))


_TOWNS = (
    "Velmar",
    "Ostrin",
    "Kaldis",
    "Perrow",
    "Tamsel",
    "Brunnek",
    "Liro",
    "Hestin",
    "Dravo",
    "Quelm",
    "Sorbet",
    "Ansk",
)
_THINGS = (
    "The harbour of {0} handles {1} containers in a month.",
    "The tram network of {0} has {1} stops.",
    "The library of {0} lends {1} books in a year.",
    "The hospital of {0} treats {1} patients in a week.",
    "The market of {0} has room for {1} stalls.",
    "The river at {0} carries {1} litres of water every second.",
    "The school board of {0} employs {1} teachers.",
    "The theatre of {0} sells {1} tickets in a season.",
    "The museum of {0} shows {1} paintings from its own collection.",
    "The solar plant of {0} supplies {1} homes.",
    "The bakery guild of {0} counts {1} members.",
    "The cycle path of {0} is used by {1} riders on a weekday.",
)


def made_material(seed: int, tasks: int = 6) -> list[Material]:
    """Reports on invented towns with figures drawn by `seed`, one on each task."""
    random = Random(seed)
    towns = random.sample(_TOWNS, tasks)
    found = []
    for town in towns:
        things = random.sample(_THINGS, 8)
        said = [thing.format(town, f"{random.randint(3, 90_000):,}") for thing in things]
        text = "\n\n".join(" ".join(said[at : at + 2]) for at in range(0, len(said), 2))
        found.append(Material.of("en", f"Describe the town of {town}.", text))
    return found
