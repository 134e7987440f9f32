"""What stops a run: a failure of the judge as a whole. A failure of one question is a reply with a reason."""

__all__ = ["JudgeError"]


class JudgeError(RuntimeError):
    """A judge that cannot be used at all; the message names it and says what to do."""
