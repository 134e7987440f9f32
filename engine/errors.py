"""What goes wrong, and who has to act.

    UsageError              what the user gave cannot be used: exit code 2
        ConfigError         a configuration (`config/errors.py`)
        FormatError         files of tasks or reports (`formats/dataset.py`)
        FormulaError        what a reward is made of (`config/formula.py`)
    JudgeError              the judge cannot be used (`judges/errors.py`)
    StoreError, PoolError, ClusterError, RewardError
                            something that adjudge works with failed: exit code 1

One report's failure is never an exception: it is a row with a reason (`scoring/contract/reasons.py`).
"""

__all__ = ["UsageError"]


class UsageError(ValueError):
    """What the user gave cannot be used: the key or place, the problem, and what to do, in one line."""
