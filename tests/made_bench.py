"""A small benchmark of our own making, laid out like DeepResearch Bench: prompts, tasks, articles, references."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.mock_openai import Call, Fault, MockOpenAI, completion

__all__ = ["DIMENSIONS", "SYSTEM", "TASKS", "made_bench", "marked", "replying_to"]

DIMENSIONS = ("comprehensiveness", "insight", "instruction_following", "readability")
SYSTEM = "agent"
TASKS = {"1": "en", "2": "zh"}
_NAMES = ("comp", "insight", "Inst", "readability")
_FACT = {"extract": "{report_text}", "deduplicate": "{statements}", "validate": "{reference}|{statements}"}


def made_bench(folder: Path, *, criteria: bool = True) -> Path:
    """The benchmark in `folder`, with or without criteria for its tasks."""
    for language in ("en", "zh"):
        kinds = {f"generate_eval_criteria_prompt_{name}": f"CRITERIA {name}" for name in _NAMES}
        kinds["generate_eval_dimension_weight_prompt"] = "WEIGHTS"
        prompts = {name: f"{kind} {language}: {{task_prompt}}" for name, kind in kinds.items()}
        _module(folder / f"prompt/criteria_prompt_{language}.py", prompts)
        marks = f"MARKS {language}: {{task_prompt}}|{{article_1}}|{{article_2}}|{{criteria_list}} {{{{}}}}"
        alone = f"ALONE {language}: {{task_prompt}}|{{article}}|{{criteria_list}}"
        _module(
            folder / f"prompt/score_prompt_{language}.py",
            {"generate_merged_score_prompt": marks, "point_wise_score_prompt": alone},
        )
    cleans = {
        f"clean_article_prompt_{language}": f"CLEAN {language}: {{article}}" for language in ("en", "zh")
    }
    _module(folder / "prompt/clean_prompt.py", cleans)
    for file, fields in _FACT.items():
        names = {"prompt_template": "zh", "prompt_template_en": "en"}
        _module(
            folder / f"utils/{file}.py",
            {name: f"{file.upper()} {lang}: {fields}" for name, lang in names.items()},
        )
    tasks = [{"id": int(name), "prompt": f"Task {name}?", "language": TASKS[name]} for name in TASKS]
    _rows(folder / "data/prompt_data/query.jsonl", tasks)
    if criteria:
        each = {name: [{"criterion": f"{name}!", "explanation": "", "weight": 1.0}] for name in DIMENSIONS}
        shared = {"dimension_weight": dict.fromkeys(DIMENSIONS, 0.25), "criterions": each}
        _rows(folder / "data/criteria_data/criteria.jsonl", [task | shared for task in tasks])
    for file in ("raw_data/agent", "cleaned_data/reference"):
        articles = [task | {"article": f"{file} {task['id']}. " * 20} for task in tasks]
        _rows(folder / f"data/test_data/{file}.jsonl", articles)
    return folder


def marked(target: float = 6, reference: float = 4, *, without: str = "") -> str:
    """A reply with one mark in every dimension but one."""
    item = {"article_1_score": target, "article_2_score": reference}
    return json.dumps(
        {name: [] if name == without else [{"criterion": f"{name}!", **item}] for name in DIMENSIONS}
    )


def replying_to(**replies: str | Callable[[str, int], str]) -> Fault:
    """A judge that replies by the first word of the prompt, lower case; a function gets the prompt and its count."""

    async def fault(mock: MockOpenAI, call: Call):
        if call.is_probe or call.constrained:  # a question of our own
            return None
        prompt = json.loads(call.body)["messages"][-1]["content"]
        reply = replies[prompt.split()[0].lower()]
        return completion(reply if isinstance(reply, str) else reply(prompt, call.before))

    return fault


def _module(file: Path, constants: dict[str, str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{name} = {text!r}\n" for name, text in constants.items()), encoding="utf-8")


def _rows(file: Path, made: list[dict]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")
