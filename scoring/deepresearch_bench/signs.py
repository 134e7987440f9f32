"""What a report does to please RACE's judge rather than a reader: counts beside its marks, which rank nobody.

Of the report as it was written: passages that address the judge, characters that a reader does not see, the share of it
that is its task and criteria, and the share of its wording (runs of five words) that is the reference report's. The
limits of each are stated in `scoring/text/integrity.py`.
"""

from adjudge.scoring.contract.scorecard import Metric
from adjudge.scoring.text.integrity import Runs, echoed, hidden_chars, injections, words_of

SIGNS = (
    Metric(name="injections", best=None, shown=False, kind="count"),
    Metric(name="hidden", best=None, shown=False, kind="count"),
    Metric(name="criteria_echo", scale=100, shown=False, kind="count"),
    Metric(name="reference_runs", scale=100, shown=False, kind="count"),
)
"""The metrics that `signs_of` gives."""


def signs_of(text: str, reference: str, asked: tuple[str, ...]) -> dict[str, float]:
    """The signs in a report of a task with this `reference` report that was `asked` this; linear."""
    return {
        "injections": float(len(injections(text))),
        "hidden": float(hidden_chars(text)),
        "criteria_echo": echoed(text, asked),
        "reference_runs": Runs([reference]).share(words_of(text)),
    }
