"""Failures of the judge as a whole, which stop a run. A failure of one question is a reply with a reason."""

from typing import Literal

__all__ = ["JudgeError", "Trouble"]

Trouble = Literal[
    "unreachable",  # no connection, no reply in time, or 429 and 5xx after the retries: may pass by itself
    "wrong_model",  # the server has no such model, or answers with another
    "thinks_unasked",  # it thinks before it answers, and was given no tokens for that
    "ignores_schema",  # its replies do not follow the JSON schema of the request
    "cut_off",  # its replies end before their answer does
    "refuses_max_tokens",  # it refuses that parameter, mostly for max_completion_tokens
    "window_too_small",  # the smallest prompt and its answer do not fit into its window
    "unusable",  # anything else: the key, the account, the path, a parameter, a filter
]


class JudgeError(RuntimeError):
    """A judge that cannot be used at all; the message names it and says what to do, `trouble` is the kind."""

    def __init__(self, message: str, trouble: Trouble = "unusable") -> None:
        super().__init__(message)
        self.trouble: Trouble = trouble
