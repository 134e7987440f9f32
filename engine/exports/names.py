"""The forms that a run can be exported in, by the names of `--format`."""

from adjudge.engine.formats.names import BENCHMARKS

__all__ = ["FORMS"]

FORMS = (
    *BENCHMARKS,
    "scores",
    "every-eval-ever",
    "eval-results",
    "space",
    "wandb",
    "mlflow",
    "harbor",
)
