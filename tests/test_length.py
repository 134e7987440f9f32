"""How long reports are: words, tokens, cited addresses, and the table of every leaderboard."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.runs.tallies import ReportLengths
from adjudge.scoring.contract.case import Case, Citation, Report, Task
from adjudge.scoring.contract.scorecard import Length, Scorecard
from adjudge.scoring.text.looks import length_of

A, B = "https://a.example/one", "https://b.example/two"


def test_words_tokens_and_citations_of_a_report() -> None:
    text = f"Costs fell by 8 percent [1]. See [the study]({A}) again {A}.\n\n## Sources\n[1] {B}\n"
    found = length_of(text, ())
    assert (found.words, found.citations) == (12, 2)
    assert found.tokens == round(len(text) / 4)
    assert length_of("成本下降了。", ()).words == 5


def test_handed_citations_count_once() -> None:
    handed = (Citation(url=A), Citation(url=B), Citation(url=B), Citation(url=""))
    assert length_of(f"As [here]({A}).", handed).citations == 2


@given(st.text(max_size=300), st.text(max_size=300))
def test_more_text_is_never_shorter(one: str, more: str) -> None:
    text = one.encode("utf-8", "replace").decode()
    longer = f"{text}\n\n{more.encode('utf-8', 'replace').decode()}"
    assert length_of(longer, ()).words >= length_of(text, ()).words - 1
    assert length_of(longer, ()).tokens >= length_of(text, ()).tokens


def test_each_report_counts_once_however_often_judged() -> None:
    lengths = ReportLengths()
    for protocol in ("race", "fact"):
        for task, words in (("1", 10), ("2", 20)):
            for repeat in (0, 1):
                case = Case(
                    task=Task(id=task, prompt="?"),
                    report=Report(task_id=task, system="able", text="x"),
                    repeat=repeat,
                )
                card = Scorecard.of(protocol, case, {"m": 1.0})
                lengths.take(card)
                if protocol == "race" or task == "1":
                    lengths.take(_long(card, words))
    found = lengths.result()["able"]
    assert (found.reports, found.words, found.tokens, found.citations) == (2, 15.0, 30.0, 1.0)


def _long(card: Scorecard, words: int) -> Scorecard:
    return msgspec.structs.replace(card, length=Length(words, 2 * words, 1))
