"""DR3-Eval's arithmetic, as the paper and its code have it."""

from collections.abc import Mapping, Sequence

__all__ = [
    "average",
    "claim_accuracy",
    "combined_recall",
    "information_recall",
    "instruction_following",
    "instruction_following_code",
    "pair_accuracy",
]


def information_recall(scores: Sequence[float]) -> float | None:
    """The share of insights that are wholly recalled: of 1, 0.5 and 0 only 1 counts. None without insights."""
    return sum(score == 1 for score in scores) / len(scores) if scores else None


def combined_recall(user_files: float | None, corpus: float | None) -> float | None:
    """The mean of the recalls there are."""
    return average({"user_files": user_files, "corpus": corpus})[0]


def pair_accuracy(verdicts: Sequence[bool]) -> float:
    """Factual accuracy of the paper: supported (claim, source) pairs over all; 0 without a pair."""
    return sum(verdicts) / len(verdicts) if verdicts else 0.0


def claim_accuracy(claims: Sequence[Sequence[bool]]) -> float | None:
    """The code's factual accuracy: claims whose every citation supports them, over all claims.

    A claim without a citation is unsupported. None without a claim.
    """
    return sum(bool(verdicts) and all(verdicts) for verdicts in claims) / len(claims) if claims else None


def instruction_following(verdicts: Sequence[bool | None]) -> float | None:
    """Satisfied over all checklist items (paper); an item without a verdict is not satisfied. None without items."""
    return sum(verdict is True for verdict in verdicts) / len(verdicts) if verdicts else None


def instruction_following_code(verdicts: Sequence[bool | None]) -> float | None:
    """Satisfied over the checklist items that have a verdict (code)."""
    return instruction_following([verdict for verdict in verdicts if verdict is not None])


def average(components: Mapping[str, float | None]) -> tuple[float | None, tuple[str, ...]]:
    """The mean of the components that have a value, and the names of those that have none.

    The paper's six are IR of user files, IR of the corpus, CC, FA, IF and DQ; its code combines the first two into one.
    """
    known = [value for value in components.values() if value is not None]
    left_out = tuple(name for name, value in components.items() if value is None)
    return (sum(known) / len(known) if known else None), left_out
