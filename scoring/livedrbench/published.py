"""LiveDRBench in the benchmark's own calls: its prompts from the user's checkout, its replies read as its code does.

Each category is graded by the code's rule, in its order, with its parameters; a request is sent up to six times, until
its reply can be read. A row of a list is matched and graded together: if either reply cannot be read, both are asked
again. A match that the reply makes up counts, as in the code, and takes no gold away.

The code stops with an error, for every question, at an answer of another shape than gold's, at replies that are JSON of
a wrong kind, and where a question has more points than keys. Here such an answer has no points, such a reply cannot be
read, and such a question has no value. SciFacts asks for a title and an alias once, where the code asks for recall and
again for precision, and goes through aliases in gold's order, where the code's differs from run to run. An answer in
prose is converted by the two calls of `convert_to_format.py`. All readings are linear in the reply.
"""

import asyncio
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

import msgspec

from adjudge.judges import Context
from adjudge.judges.published import (
    Checkout,
    PublishedQuestion,
    UnreadableReply,
    Wording,
    Wordings,
    digests,
)
from adjudge.scoring.answers.parts import Overlap, ask_until_read
from adjudge.scoring.contract.case import NULL, Case, GoldError
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Evidence, Metric, Missing
from adjudge.scoring.contract.scorecard import Outcome as Note
from adjudge.scoring.livedrbench.claims import given_answer
from adjudge.scoring.livedrbench.graded_slots import Graded, Rules, count_fields, product, slot_points
from adjudge.scoring.livedrbench.livedr import FIELD_METRICS, LiveDRProtocol, Outcome

Object = dict[str, Any]
ATTEMPTS = 6
NAMED = {"prior-art": "priorart", "entities": "entities"}
"""The categories of titles and names by the file of their prompt."""

_SLOTS = "src/evals/datasets_flights.py"
_SCIFACTS = "src/evals/scifacts.py"
_CONVERT = "src/convert_to_format.py"


@lru_cache(maxsize=8)
def live_wordings(folder: str) -> dict[str, Wording]:
    """The requests in the checkout at `folder`, by what they are for. Raises CheckoutError."""
    checkout = Checkout(folder)
    slot: Any = {"max_tokens": 1024, "temperature": 0.0}
    named: Any = {"max_tokens": 500, "temperature": 0.0}
    shown = {"format": "format", "json.dumps(pred)": "pred"}
    return {
        "grades": Wording.of(checkout.formatted(_SLOTS, "prompts.dict"), **slot),
        "match": Wording.of(checkout.formatted(_SLOTS, "prompts.list_of_dicts_match"), **slot),
        "equal": Wording.of(
            checkout.inline(_SCIFACTS, "is_match_func", {"actual_item": "actual_item", "pred": "pred"}),
            checkout.plain(_SCIFACTS, "prompts.EM"),
        ),
        "answer": Wording.of(
            checkout.inline(_CONVERT, "parse_output", {"pred": "pred"}),
            checkout.plain(_CONVERT, "parse_output.PROMPT"),
        ),
        "conversion": Wording.of(
            checkout.inline(_CONVERT, "convert_to_format", shown),
            checkout.plain(_CONVERT, "convert_to_format.PROMPT"),
        ),
    } | {
        f"search.{category}": Wording.of(
            checkout.formatted(f"src/evals/{file}.py", "prompts.str_search"), **named
        )
        for category, file in NAMED.items()
    }


def json_in(text: str) -> Any:
    """The JSON value that a reply's `text` is, with or without a fence around it. Raises UnreadableReply."""
    return _json(text.replace("```json", "").replace("```", "").strip())


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableReply(f"not JSON: {type(error).__name__}") from error


class PublishedGrades(PublishedQuestion[Object], frozen=True, kw_only=True):
    """How well does `dict_pred` say what the gold object says, key by key?"""

    words = "grades of an answer's fields, published call"
    attempts: ClassVar[int] = ATTEMPTS

    dict_pred: str

    def read(self, text: str) -> Object:
        """A number for each key."""
        found = json_in(text)
        if not isinstance(found, dict) or not all(isinstance(one, int | float) for one in found.values()):
            raise UnreadableReply("not an object of numbers")
        return found

    def example(self) -> str:
        """The best grade for every key."""
        return json.dumps(dict.fromkeys(json.loads(self.context["dict_gt"]), 3))


class PublishedMatch(PublishedQuestion[Object], frozen=True, kw_only=True):
    """Which object of the gold list is `dict_pred` by its primary keys?"""

    words = "the gold entry an answer matches, published call"
    attempts: ClassVar[int] = ATTEMPTS

    dict_pred: str
    primary_keys: str
    note: str

    def read(self, text: str) -> Object:
        """The gold object; empty if there is none."""
        found = json_in(text)
        if found != [] and found != "" and not isinstance(found, dict):
            raise UnreadableReply("not an object")
        return found or {}

    def example(self) -> str:
        """The first gold object."""
        return json.dumps(next(iter(json.loads(self.context["list_gt"])), {}))


class Match(msgspec.Struct, frozen=True):
    """The gold text that a prediction is said to be; None for none."""

    text: str | None


def match_in(text: str) -> Match:
    """The match in the JSON that `text` is, fences not taken off. Raises UnreadableReply."""
    found = _json(text.strip())
    if isinstance(found, dict):
        match = found.get("match")
        if match is None or isinstance(match, str):
            return Match(match)
    elif isinstance(found, list | str) and "match" not in found:
        return Match(None)
    raise UnreadableReply("not an object with a text as its match")


class PublishedSearch(PublishedQuestion[Match], frozen=True, kw_only=True):
    """Which text of the gold list is `pred_str`?"""

    words = "the gold text an answer matches, published call"
    attempts: ClassVar[int] = ATTEMPTS

    pred_str: str

    def read(self, text: str) -> Match:
        """The match."""
        return match_in(text)

    def example(self) -> str:
        """The first gold text."""
        return json.dumps({"match": next(iter(json.loads(self.context["gt_list"])), None)})


class PublishedEqual(PublishedQuestion[bool], frozen=True, kw_only=True):
    """Is `pred` the gold text?"""

    words = "whether an answer is the gold text, published call"

    pred: str

    def read(self, text: str) -> bool:
        """Whether the reply is the word true, and nothing else."""
        return text.lower() == "true"

    def example(self) -> str:
        """Yes."""
        return "True"


class PublishedAnswer(PublishedQuestion[str], frozen=True, kw_only=True):
    """Where in the prose `pred` is the JSON?"""

    words = "the answer in a report, published call"

    def read(self, text: str) -> str:
        """The reply."""
        return text

    def example(self) -> str:
        """An answer of ordinary length."""
        return "[[" + "{}" * 200 + "]]"


class PublishedConversion(PublishedQuestion[Any], frozen=True, kw_only=True):
    """What is the JSON `pred` in the form that the question wants?"""

    words = "an answer in the wanted form, published call"

    pred: str

    def read(self, text: str) -> Any:
        """The one slot of the answer."""
        return [_json(text)]

    def example(self) -> str:
        """An answer of ordinary length."""
        return "[" + ",".join(["{}"] * 50) + "]"


class PublishedGold(msgspec.Struct, frozen=True):
    """A question's ground truth in the shape of its category, and the published `eval_info`, both as they are."""

    category: str
    ground_truths: msgspec.Raw
    eval_info: msgspec.Raw = NULL


class PublishedLiveDR(LiveDRProtocol, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score an answer by the calls of the benchmark at `checkout`."""

    forms: ClassVar[tuple[str, ...]] = ("",)

    checkout: str

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """`metrics`, those of fields on questions that ask for materials and papers alone. Raises GoldError."""
        category, truths, _ = _truth(case)
        if len(_field_names(category, truths)) > 1:
            return self.metrics
        return tuple(metric for metric in self.metrics if metric not in FIELD_METRICS)

    def prompts(self) -> dict[str, str]:
        """Digests of all that may be sent, by what it is for. Raises CheckoutError."""
        return digests("livedr", live_wordings(self.checkout))

    async def graded(self, case: Case, tools: Tools) -> Outcome | Missing:
        """The answer by its category's rule. Raises GoldError."""
        category, truths, info = _truth(case)
        wordings = live_wordings(self.checkout)
        answer = await _answer(case, wordings, tools)
        if isinstance(answer, Missing):
            return answer
        evidence: list[Evidence] = []
        names = _field_names(category, truths)
        none = Overlap(0.0, 0.0, 0.0)
        found: Sequence[Overlap | Missing] = [none] * max(len(names), 1)
        if not _fits(category, truths, answer):
            said = Note("note", words="not of the shape that the question asks for")
            evidence.append(Evidence(what="answer", outcome=said))
        elif names:
            found = await _scifacts(names, truths[0], answer[0], wordings["equal"], tools)
        elif category in NAMED:
            found = [await _named(category, truths, answer, wordings[f"search.{category}"], tools)]
        else:
            found = [await _slots(truths, answer, info, wordings, tools)]
        fields: list[Overlap] = []
        for one in found:
            if isinstance(one, Missing):
                return one
            fields.append(one)
        apart = [(one, one) for one in fields] if len(fields) > 1 else []
        outcome = Outcome.of(lambda best: (product(fields),), 1, [], evidence)
        return msgspec.structs.replace(outcome, fields=apart)


def _field_names(category: str, truths: Sequence[Any]) -> list[str]:
    """The fields of a SciFacts question, materials where the first gold row has one; none of other categories."""
    if not category.startswith("scifacts-"):
        return []
    return ["material", "paper_title"] if "material" in truths[0][0] else ["paper_title"]


def _truth(case: Case) -> tuple[str, list[Any], Object]:
    """Category, ground truths and `eval_info`. Raises GoldError."""
    gold = case.gold("livedr", PublishedGold)
    try:
        truths, info = json.loads(bytes(gold.ground_truths)), json.loads(bytes(gold.eval_info))
    except (ValueError, RecursionError) as error:
        raise GoldError("gold_invalid", f"task {case.task.id}: ground_truths: {error}") from error
    listed = gold.category in NAMED or gold.category.startswith("scifacts-")
    kinds: tuple[type, ...] = (list,) if listed else (list, dict)
    if gold.category == "claims" or not isinstance(truths, list) or not truths:
        raise GoldError("gold_invalid", f"task {case.task.id}: not a question of a published category")
    if not all(isinstance(one, kinds) and one for one in truths) or not isinstance(info or {}, dict):
        raise GoldError("gold_invalid", f"task {case.task.id}: ground_truths of another shape than published")
    return gold.category, truths, info or {}


async def _answer(case: Case, wordings: Wordings, tools: Tools) -> Any:
    """The slots of the answer, as they are; Missing if prose could not be converted."""
    raw = given_answer(case.report)
    if raw is not None:
        try:
            return json.loads(bytes(raw))
        except (ValueError, RecursionError):
            return None
    context = Context.of(pred=case.report.text)
    said = await ask_until_read(tools, PublishedAnswer(context=context, wording=wordings["answer"]))
    if isinstance(said, Missing):
        return said
    asked = PublishedConversion(
        context=Context.of(format=case.task.prompt),
        wording=wordings["conversion"],
        pred=json.dumps(said.value),
    )
    found = await ask_until_read(tools, asked)
    return found if isinstance(found, Missing) else found.value


def _fits(category: str, truths: Sequence[Any], answer: Any) -> bool:
    """Whether the answer has gold's shape, slot by slot and row by row."""
    if not isinstance(answer, list) or len(answer) != len(truths):
        return False
    if category.startswith("scifacts-") and len(answer) != 1:
        return False
    row = str if category == "entities" else dict
    return all(
        type(slot) is type(gold) and (isinstance(slot, dict) or all(type(one) is row for one in slot))
        for slot, gold in zip(answer, truths, strict=True)
    )


async def _slots(
    truths: Sequence[Any], answer: Sequence[Any], info: Object, wordings: Wordings, tools: Tools
) -> Overlap | Missing:
    """NovelDS and Flights: objects graded key by key, rows matched first."""

    async def graded(gold: Any, slot: Any) -> list[Graded] | Missing:
        if not isinstance(gold, dict):
            return await _rows(gold, slot, info, wordings, tools)
        question = PublishedGrades(
            context=Context.of(dict_gt=json.dumps(gold)),
            wording=wordings["grades"],
            dict_pred=json.dumps(slot),
        )
        reply = await ask_until_read(tools, question)
        return (
            reply
            if isinstance(reply, Missing)
            else [Graded(tuple(slot), reply.value, tuple(gold), whole=True)]
        )

    items: list[Graded] = []
    for one in await asyncio.gather(*map(graded, truths, answer)):
        if isinstance(one, Missing):
            return one
        items += one
    found = points(items, truths, info)
    return Missing("judge_unparseable") if found is None else found


async def _rows(
    gold: list[Object], predicted: Sequence[Object], info: Object, wordings: Wordings, tools: Tools
) -> list[Graded] | Missing:
    """Each row in order against the gold rows that are left."""
    keys, graded = info.get("primary_keys") or [], []
    for row in predicted:
        found = await _matched(gold, row, info, wordings, tools)
        if isinstance(found, Missing):
            return found
        match, grades = found
        graded.append(Graded(tuple(row), grades))
        if grades is not None:
            same = (place for place, one in enumerate(gold) if all(one.get(k) == match.get(k) for k in keys))
            place = next(same, None)
            gold = gold if place is None else gold[:place] + gold[place + 1 :]
    return graded


async def _matched(
    gold: list[Object], row: Object, info: Object, wordings: Wordings, tools: Tools
) -> tuple[Object, Object | None] | Missing:
    """The gold row that `row` is said to be, and its grades; matched and graded again if either cannot be read."""
    question = PublishedMatch(
        context=Context.of(list_gt=json.dumps(gold)),
        wording=wordings["match"],
        dict_pred=json.dumps(row),
        primary_keys=json.dumps(info.get("primary_keys")),
        note=json.dumps(info.get("evaluation_note", {})),
    )
    for attempt in range(ATTEMPTS):
        try:
            match = await _read(tools, msgspec.structs.replace(question, attempt=attempt))
            if isinstance(match, Missing):
                return match
            if not match:
                return {}, None
            context = Context.of(dict_gt=json.dumps(match))
            asked = PublishedGrades(
                context=context, wording=wordings["grades"], dict_pred=json.dumps(row), attempt=attempt
            )
            grades = await _read(tools, asked)
            return grades if isinstance(grades, Missing) else (match, grades)
        except UnreadableReply:
            continue
    return Missing("judge_unparseable")


async def _read(tools: Tools, question: PublishedQuestion[Object]) -> Object | Missing:
    """One reply as read. Raises UnreadableReply."""
    judgment = await tools.ask(question)
    if judgment.answer is None:
        return Missing(judgment.reason or "judge_unparseable")
    return question.read(judgment.answer.text)


def points(graded: Sequence[Graded], truths: Sequence[Any], info: Object) -> Overlap | None:
    """Precision, recall and F1 of graded objects and rows; None if there are more points than keys."""
    rules = Rules(main_claims=info.get("main_claims") or (), ignore_keys=info.get("ignore_keys") or ())
    found = slot_points(graded, count_fields(truths, rules), rules)
    return None if found.right > min(found.predicted, found.gold) else found.overlap


async def _named(
    category: str, truths: Sequence[Any], answer: Sequence[Any], wording: Wording, tools: Tools
) -> Overlap | Missing:
    """PriorArt, by title, and Entities: each prediction in order against the gold texts that are left."""
    title = category == "prior-art"
    golds = [[row.get("title", "") if title else row for row in slot] for slot in truths]
    told = [[row.get("title", "") if title else row for row in slot] for slot in answer]
    right = 0
    for one in await asyncio.gather(
        *(_searched(*pair, wording, tools) for pair in zip(golds, told, strict=True))
    ):
        if isinstance(one, Missing):
            return one
        right += one
    wanted = sum(map(len, golds))
    if right > wanted:
        return Missing("judge_unparseable")
    return Overlap.counted(right, sum(map(len, told)), wanted)


async def _searched(
    gold: list[str], predicted: Sequence[Any], wording: Wording, tools: Tools
) -> int | Missing:
    right = 0
    for one in predicted:
        question = PublishedSearch(
            context=Context.of(gt_list=json.dumps(gold)), wording=wording, pred_str=json.dumps(one)
        )
        reply = await ask_until_read(tools, question)
        if isinstance(reply, Missing):
            return reply
        match = reply.value.text
        if match is not None:
            right += 1
            same = (place for place, text in enumerate(gold) if text.lower() == match.lower())
            place = next(same, None)
            gold = gold if place is None else gold[:place] + gold[place + 1 :]
    return right


async def _scifacts(
    names: Sequence[str], gold: Sequence[Object], predicted: Sequence[Object], wording: Wording, tools: Tools
) -> Sequence[Overlap | Missing]:
    """Every predicted value of each field against the aliases of gold entries. An equal text needs no asking."""

    async def alike(pairs: Sequence[tuple[Any, str]]) -> bool | Missing:
        """Whether any (value, alias) is the same, one by one. A value that is empty, or not a text, matches nothing."""
        for value, alias in pairs:
            if not isinstance(value, str) or not value:
                continue
            if value.lower().strip() == alias.lower().strip():
                return True
            question = PublishedEqual(context=Context.of(actual_item=alias), wording=wording, pred=value)
            reply = await ask_until_read(tools, question)
            if isinstance(reply, Missing):
                return reply
            if reply.value:
                return True
        return False

    async def field(name: str) -> Overlap | Missing:
        entries = [list(dict.fromkeys(entry[name])) for entry in gold]
        values = [row.get(name, "") for row in predicted]
        every = list(dict.fromkeys(alias for entry in entries for alias in entry))
        recalled = [alike([(value, alias) for value in values for alias in entry]) for entry in entries]
        precise = [alike([(value, alias) for alias in every]) for value in values]
        right = []
        for one in await asyncio.gather(*recalled, *precise):
            if isinstance(one, Missing):
                return one
            right.append(one)
        recall = sum(right[: len(entries)]) / len(entries)
        return Overlap.of(sum(right[len(entries) :]) / len(values) if values else 0.0, recall)

    return await asyncio.gather(*map(field, names))
