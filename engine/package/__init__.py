"""Evaluation of deep-research reports, on judges you host yourself.

    run = adjudge.evaluate("adjudge.yaml")
    run.scores, run.judgments, run.pages            # Arrow tables
    adjudge.score(prompt="...", text="...", rubrics=["Names the year."], judge="openai:http://127.0.0.1:8000/v1#MODEL")

Each function has a form that is awaited, `evaluate_async` and so on; the plain ones also work where an event loop is
running, as in a notebook.
"""

# Type checkers take it for that of `typing`. A command minds no signal until this package is imported.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from adjudge.engine.config.run import RunConfig
    from adjudge.engine.config.settings import ConfigError
    from adjudge.engine.errors import UsageError
    from adjudge.engine.library.evaluations import evaluate, evaluate_async
    from adjudge.engine.library.runs import Run, compare, compare_async, open, open_async
    from adjudge.engine.library.scores import Score, score, score_async
    from adjudge.engine.rewards.model import Reward, RewardError, RewardItem, RewardModel

__all__ = [
    "ConfigError",
    "Reward",
    "RewardError",
    "RewardItem",
    "RewardModel",
    "Run",
    "RunConfig",
    "Score",
    "UsageError",
    "compare",
    "compare_async",
    "evaluate",
    "evaluate_async",
    "open",
    "open_async",
    "score",
    "score_async",
]

if not TYPE_CHECKING:
    # Imported when first asked for: `import adjudge` takes milliseconds, what is behind it a second.
    _HOMES = {
        "config.run": ("RunConfig",),
        "config.settings": ("ConfigError",),
        "errors": ("UsageError",),
        "library.evaluations": ("evaluate", "evaluate_async"),
        "library.runs": ("Run", "compare", "compare_async", "open", "open_async"),
        "library.scores": ("Score", "score", "score_async"),
        "rewards.model": ("Reward", "RewardError", "RewardItem", "RewardModel"),
    }

    def __getattr__(name: str) -> object:
        from importlib import import_module

        for home, names in _HOMES.items():
            if name in names:
                return getattr(import_module(f"adjudge.engine.{home}"), name)
        raise AttributeError(f"module 'adjudge' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
