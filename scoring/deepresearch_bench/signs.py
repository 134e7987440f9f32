"""What a report does to please RACE's judge rather than a reader: counts beside its marks, which rank nobody.

Of the report as it was written: passages that address the judge, characters that a reader does not see, criteria that
it says word for word, and the share of its wording (runs of five words) that is the reference report's. The limits of
each are stated in `scoring/text/integrity.py`.
"""

from adjudge.scoring.contract.scorecard import Metric
from adjudge.scoring.text.integrity import Runs, hidden_chars, injections, said_in, words_of

SIGNS = (
    Metric(name="injections", best=None, shown=False, kind="count"),
    Metric(name="hidden", best=None, shown=False, kind="count"),
    Metric(name="criteria_echo", scale=100, shown=False, kind="count"),
    Metric(name="reference_runs", scale=100, shown=False, kind="count"),
)
"""The metrics that `signs_of` gives."""


def signs_of(text: str, reference: str, criteria: tuple[str, ...]) -> dict[str, float]:
    """The signs in a report of a task with this `reference` report and these `criteria`; linear."""
    words = words_of(text)
    return {
        "injections": float(len(injections(text))),
        "hidden": float(hidden_chars(text)),
        "criteria_echo": said_in(words, criteria) / len(criteria) if criteria else 0.0,
        "reference_runs": Runs([reference]).share(words),
    }
