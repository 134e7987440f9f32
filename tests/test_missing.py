"""What is said of a missing score: every reason has a cause and a remedy, and secrets are left out."""

import msgspec
import pytest

from adjudge.engine.config.judge import JudgeConfig
from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.record import Failure, Failures
from adjudge.engine.statistics.selection import cause_of, explained, remedy, said_of
from adjudge.scoring.contract.reasons import CAUSES, TRANSIENT
from adjudge.scoring.contract.scorecard import MISSING, Evidence, Scorecard
from tests.ranked import record


@pytest.mark.parametrize("reason", CAUSES)
def test_every_reason_has_a_cause_and_a_remedy(reason: str) -> None:
    assert explained(reason) == f"{reason} ({cause_of(reason)}): {remedy(reason)}"
    if reason in TRANSIENT:
        assert remedy(reason).endswith("run the same command again")
    elif CAUSES[reason] == "infrastructure":
        assert remedy(reason).endswith("run the same command with --retry-unscored")
    else:
        assert remedy(reason) != "-"


def test_unknown_reason_is_explained_without_a_guess() -> None:
    assert explained("of_the_future") == "of_the_future (-): -"


def test_sentence_names_the_server_without_its_secrets() -> None:
    judge = JudgeConfig(backend="openai", url="http://user:secret@host:8000/v1?key=secret", model="m")
    config = RunConfig(tasks="tasks.jsonl", judge=judge)
    failure = Failure(protocol="made", reason="judge_timeout", scorecards=2, places=("able on 1",))
    run = msgspec.structs.replace(record(1, failures=(failure,)), config=config)
    assert said_of("made score", {"judge_timeout": 2}, "made", [run]) == [
        "made score: 2 unscored, judge_timeout (infrastructure): judge made-up at host:8000; such as able on 1; "
        "run the same command again"
    ]


def card(task: str, *urls: str) -> Scorecard:
    return Scorecard(
        protocol="made",
        system="able",
        task_id=task,
        sample=0,
        repeat=0,
        scores={"score": None, "other": None},
        status="unscored",
        reasons={"score": "page_timeout", "other": "page_timeout"},
        evidence=tuple(Evidence(what="w", outcome=MISSING, url=url, reason="page_timeout") for url in urls),
    )


def test_failures_are_the_same_in_any_order_and_bounded() -> None:
    cards = [
        card(str(task), *(f"https://{task}.example/{page}" for page in range(task))) for task in range(9)
    ]
    found = []
    for order in (cards, cards[::-1]):
        failures = Failures()
        for one in order:
            failures.take(one)
        found.append(failures.result())
    assert found[0] == found[1]
    assert found[0] == (
        Failure(
            protocol="made",
            reason="page_timeout",
            scorecards=9,
            places=("able on 0", "https://1.example/0", "https://2.example/0"),
        ),
    )
    failures = Failures()
    failures.take(card("1", "https://long.example/" + "x" * 10_000))
    assert len(failures.result()[0].places[0]) == 200
