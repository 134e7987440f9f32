"""The formats a run can be exported in, by their `--format` names."""

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
