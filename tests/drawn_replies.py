"""Replies of any quality to the prompts of DeepResearch Bench, drawn at random, and the judges that give them."""

import json
import random
from pathlib import Path

from adjudge.judges.published import Checkout
from adjudge.scoring.deepresearch_bench.published_criteria import criteria_wordings
from tests.reference_bench import DIMENSIONS, DrawnJudge

__all__ = ["FAILED", "between", "criteria_judge", "drafted", "fact_judge", "marks", "odd", "race_judge"]

MARKS = ("article_1_score", "article_2_score")
FAILED = "scrape failed: "


def between(text: str, start: str, end: str) -> str:
    return text.split(start, 1)[1].split(end, 1)[0]


def marks(criteria: dict[str, list[dict[str, str]]], draw: random.Random, pair: bool = True) -> str:
    """A reply to a request for marks by `criteria`, of any quality; `pair` marks the reference too."""
    said = {
        name: [
            {
                "criterion": one["criterion"],
                "analysis": "So, {so}.",
                **{m: draw.randint(-4, 44) / 4 for m in (MARKS if pair else ("target_score",))},
            }
            for one in criteria[name]
        ]
        for name in draw.sample(DIMENSIONS, 4)
    }
    kind = draw.choice(
        "plain fenced prose tail open broken garbage empty lacking list flat texts numbers less more".split()
    )
    some = draw.choice(DIMENSIONS)
    items = said[some]
    match kind:
        case "garbage":
            return draw.choice(["Both are fine.", "{comprehensiveness}", "[1, 2", "null", "7", '"so"'])
        case "empty":
            return ""
        case "lacking":
            del said[some]
        case "list":
            said[some] = {"marks": items}
        case "flat":
            said[some] = []
        case "texts":
            for one in items:
                text = one["criterion"]
                one["criterion"] = draw.choice(
                    [text.upper(), f" {text} ", text[: len(text) // 2], f"{text}!", "none of them", "", 7]
                )
        case "numbers":
            for one in items:
                one["article_1_score"] = draw.choice(["7.5", " 8 ", None, "high", True, [1], 11, -1])
                one["article_2_score"] = draw.choice(["6", None, "low", 5])
        case "less":
            del items[:: draw.choice([1, 2])]
            items[1:] = [draw.choice([one, None, "so", {"target_score": 4}]) for one in items[1:]]
        case "more":
            items += [
                dict(items[0], article_1_score=draw.choice([0, 10])),
                {"criterion": "extra", MARKS[0]: 3},
            ]
            said["style"] = items
    text = json.dumps(said, ensure_ascii=draw.random() < 0.5, indent=draw.choice([None, 2]))
    match kind:
        case "fenced":
            return f"Here:\n```json\n{text}\n```\nDone."
        case "prose":
            return f"The marks are {text}, I think."
        case "tail":
            return f"Note {{this}}: {text}"
        case "open":
            return f"```json\n{text}"
        case "broken":
            return text[: draw.randint(len(text) // 2, len(text))].replace('",', '"', 1)
    return text


def cleaned(article: str, draw: random.Random) -> str:
    hopeless = len(article) % 5 == 0
    if hopeless or draw.random() < 0.3:
        return draw.choice(["", "I cannot.", " " * 200, "x" * 99])
    return draw.choice([f"{article[:-5]}.", f"\n{article[:600]} ", article.replace("[1]", "")])


def race_judge(bench: Path) -> DrawnJudge:
    """Tells cleaning from marks by how the checkout's templates begin and end."""
    checkout, languages = Checkout(bench), ("en", "zh")
    cleans = [
        checkout.formatted("prompt/clean_prompt.py", f"clean_article_prompt_{language}").pieces
        for language in languages
    ]
    scores = [
        (
            name == "generate_merged_score_prompt",
            checkout.formatted(f"prompt/score_prompt_{language}.py", name).pieces,
        )
        for name in ("generate_merged_score_prompt", "point_wise_score_prompt")
        for language in languages
    ]

    def draw(prompt: str, by: random.Random) -> str:
        for pieces in cleans:
            before, after = pieces[0][0], pieces[1][0]
            if prompt.startswith(before) and prompt.endswith(after):
                return cleaned(prompt[len(before) : len(prompt) - len(after)], by)
        for pair, pieces in scores:
            (before, field), (after, _) = pieces[-2:]
            assert field == "criteria_list"
            if prompt.startswith(pieces[0][0]) and prompt.endswith(after):
                return marks(json.loads(prompt[: len(prompt) - len(after)].rpartition(before)[2]), by, pair)
        raise AssertionError(prompt[:200])

    return DrawnJudge(draw)


def criteria_judge(bench: Path) -> DrawnJudge:
    """Tells the request for weights from those for criteria by how the checkout's templates begin."""
    wordings = criteria_wordings(Checkout(bench))
    heads = tuple(wordings[f"criteria.weights.{one}"].turns[0][1].pieces[0][0] for one in ("en", "zh"))
    return DrawnJudge(lambda prompt, by: drafted(prompt.startswith(heads), by))


def odd(reply: str, draw: random.Random) -> str:
    """`reply` damaged somewhere."""
    place, kind = draw.randrange(len(reply) + 1), draw.randrange(6)
    extra = draw.choice(
        ['"', "{", "}", "```", "```json", "[", "NaN", "1e999", "9" * 5_000, "\x00", "'insight'", "é"]
    )
    if kind == 0:
        return reply[:place]
    if kind == 1:
        return reply[place:]
    if kind == 2:
        return reply[:place] + extra + reply[place:]
    if kind == 3:
        return reply.replace(draw.choice(DIMENSIONS), draw.choice(["insight", "style", "1"]), 1)
    if kind == 4:
        return reply.replace(": 5", f": {draw.choice(['NaN', '-3', '1e400', 'Infinity', 'null', '[]'])}")
    return reply


def drafted(weights: bool, draw: random.Random) -> str:
    """A reply to a prompt for weights or criteria, of any quality."""
    if draw.random() < 0.3:
        return draw.choice(
            ["", "Well.", '{"insight": 0.5}', "[]", '[{"criterion": "a"}]', "{}", "7", '{"insight": "x"}']
        )
    if weights:
        shares = [draw.randint(1, 50) for _ in DIMENSIONS]
        found: object = {name: share / sum(shares) for name, share in zip(DIMENSIONS, shares, strict=True)}
    else:
        found = [{"criterion": f"C{n} ünd", "explanation": "So.", "weight": 0.25} for n in range(4)]
    text = json.dumps(found)
    return draw.choice(
        [text, f"```json\n{text}\n```", f"So: <JSON_output>\n{text}\n</json_output> done", f"```{text}```"]
    )


def cited(urls: list[str], draw: random.Random) -> str:
    """A reply to a prompt for citations, of any quality."""
    kind = draw.choice(
        "plain plain fenced fenced escaped deeper list garbage empty none braces numbers".split()
    )
    what = f"Sort {draw.randrange(10**9)}"  # so that no two reports ask the same
    statements = [f"{what} grew by {n} % in {2000 + n}" for n in range(4)]
    said: list[object] = [
        {
            "fact": draw.choice(statements)
            + draw.choice(["", " [as said](https://x.example/a)", " é", " []()"]),
            "ref_idx": draw.randint(0, 9),
            "url": draw.choice(urls),
        }
        for _ in range(draw.randint(1, 14))
    ]
    match kind:
        case "garbage":
            return draw.choice(
                ["I found none.", "[", "7", "null", '["so"]', '[{"url": "a"}]', '[{"fact": 3, "url": "b"}]']
            )
        case "empty":
            return ""
        case "none":
            return draw.choice(["[]", "```json\n[]\n```", "{}"])
        case "braces":
            return json.dumps({"citations": said})
    text = json.dumps(said, ensure_ascii=False, indent=draw.choice([None, 1]))
    match kind:
        case "fenced":
            return f"```json\n{text}\n```"
        case "escaped":
            return text.replace(" in ", " \\> \\~ \\+ \\< ")
        case "deeper":
            return text.replace(" in ", " \\\\> \\\\\\~ ", 1)
    return text


def kept(size: int, draw: random.Random) -> str:
    some = sorted(draw.sample(range(1, size + 1), draw.randint(1, size)))
    return draw.choice(
        [
            f"{some}", f"```json\n{some}\n```", f"{some}", "[]", "{}", f"{[0, *some]}", f"{[*range(1, size + 1), 1]}",
            "None repeat.", "", "[1, 2", f"{some[:1] * 2}",
        ]
    )  # fmt: skip


def verdicts(size: int, failed: bool, draw: random.Random) -> str:
    words = ["unknown"] if failed else ["supported", "supported", "unsupported", "unknown", "partly", None]
    said: list[object] = [{"idx": n, "result": draw.choice(words)} for n in range(1, size + 1)]
    kind = draw.choice("plain plain fenced fenced mixed repeated short long garbage words empty".split())
    match kind:
        case "mixed":
            draw.shuffle(said)
        case "repeated":
            said = [dict(one, idx=1.0) for one in said]
        case "short":
            said = said[1:]
        case "long":
            said.append(said[0])
        case "garbage":
            return draw.choice(["All fine.", "[", "{}", "null", "3", '"a"', '[["idx"]]'])
        case "words":
            said[0] = draw.choice(
                [{"idx": "one", "result": "supported"}, {"result": "supported"}, "so", None]
            )
        case "empty":
            return ""
    text = json.dumps(said)
    return f"```json\n{text}\n```" if kind == "fenced" else text


def fact_judge(bench: Path, urls: list[str]) -> DrawnJudge:
    """Tells the kinds of prompts apart by how the checkout's templates begin and end."""
    checkout = Checkout(bench)
    kinds = {
        kind: [
            checkout.formatted(f"utils/{kind}.py", name).pieces
            for name in ("prompt_template", "prompt_template_en")
        ]
        for kind in ("extract", "deduplicate", "validate")
    }

    def draw(prompt: str, by: random.Random) -> str:
        for kind, templates in kinds.items():
            for pieces in templates:
                if prompt.startswith(pieces[0][0]) and prompt.endswith(pieces[-1][0]):
                    inner = prompt[len(pieces[0][0]) : len(prompt) - len(pieces[-1][0])]
                    if kind == "extract":
                        return cited(urls, by)
                    statements = inner if kind == "deduplicate" else inner.rsplit(pieces[1][0], 1)[1]
                    size = len(statements.split("\n"))
                    return (
                        kept(size, by)
                        if kind == "deduplicate"
                        else verdicts(size, inner.startswith(FAILED), by)
                    )
        raise AssertionError(prompt[:200])

    return DrawnJudge(draw)
