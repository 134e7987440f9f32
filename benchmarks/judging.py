"""How often `adjudge judge` takes a judge for none, and what only answers for a judge.

    python -m benchmarks.judging [--quick] [--json] [--only WORDS]

200 sets of made reports (--quick: 20), each tried with judges of known worth on statements, criteria and reports side
by side. The right verdict is to pass those that are right, or err once in thirty answers, and to fail those that answer
blindly. The lexical judge passes: made reports say nothing in other words.
"""

import asyncio
from collections.abc import Callable, Iterator

from adjudge.engine.trial.trial import trial
from adjudge.judges import Judge, LexicalJudge, ScriptedJudge
from benchmarks.timing import Row, alone, main
from tests.planted import Oracle, constant_judge, made_material

JUDGES: dict[str, tuple[str, Callable[[Oracle, int], Judge]]] = {
    "always right": ("passed", lambda oracle, seed: ScriptedJudge(oracle)),
    "errs once in thirty answers": ("passed", lambda oracle, seed: oracle.erring(seed, 1 / 30)),
    "the first answer to everything": ("failed", lambda oracle, seed: constant_judge(last=False)),
    "the last answer to everything": ("failed", lambda oracle, seed: constant_judge(last=True)),
    "at random": ("failed", lambda oracle, seed: oracle.erring(seed, 1.0)),
    "half at random": ("failed", lambda oracle, seed: oracle.erring(seed, 0.5)),
    "lexical": ("passed", lambda oracle, seed: LexicalJudge()),
}


def rightly(name: str, seeds: int) -> float:
    """The share of data sets on which a judge got the verdict that it deserves."""
    deserved, made = JUDGES[name]
    right = 0
    for seed in range(seeds):
        material = made_material(seed)
        judge = made(Oracle(material), seed)
        right += asyncio.run(trial(judge, {"en": material})).outcome == deserved
    return right / seeds


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """A row for each judge."""
    seeds = 20 if quick else 200
    for name, (deserved, _) in JUDGES.items():
        title = f"adjudge judge, {name}: {deserved}"
        if wanted(title):
            yield alone(title, rightly(name, seeds), "", n=seeds)


if __name__ == "__main__":
    main(__doc__, rows)
