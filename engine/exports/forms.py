"""The forms of results by the names of `--format`, which are all that the parser and shell completion need."""

from typing import Literal, get_args

Benchmark = Literal["deepresearch-bench", "livedrbench", "dr3-eval", "deepresearchgym"]
JudgeData = Literal["judge-sft", "judge-preferences"]
Form = Literal[
    Benchmark, "scores", "every-eval-ever", "eval-results", "space", "wandb", "mlflow", "harbor", JudgeData
]

BENCHMARKS: tuple[Benchmark, ...] = get_args(Benchmark)
"""The forms that results can be imported from."""
FORMS: tuple[Form, ...] = get_args(Form)
"""The forms that a run can be exported in."""
