"""What a configuration may choose of a judge: names and defaults that need no client and no engine."""

from typing import Literal

__all__ = ["KEY_VARIABLE", "THINKING_TOKENS", "Combination", "Omitted", "Scoring"]

KEY_VARIABLE = "OPENAI_API_KEY"
THINKING_TOKENS = 16_384

Omitted = Literal["max_tokens", "temperature", "seed", "response_format"]
"""What may be left out of a request."""
Combination = Literal["mean", "median", "majority"]
"""How a panel's answers become one."""
Scoring = Literal["sampled", "expected"]
"""Whether an answer is taken as written, or as the mean over the probabilities of all labels."""
