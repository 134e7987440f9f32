"""A run as the rewards of Harbor's verifiers: one `reward.json` per report, as a task's tests leave it behind.

`reward` is what `adjudge` pays for the report (`reward:` of the configuration, or its protocols' headline metrics); all
metrics that have a value are listed beside it. A report without a reward has no file: Harbor then reports a failed
verifier, whereas a 0 would look like a score.
"""

import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from adjudge.engine.config.reward import Formula
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.fetchers.files import file_name
from adjudge.scoring.contract.scorecard import Scorecard


def write_rewards(cards: Iterable[Scorecard], config: RunConfig, out: Path) -> Iterator[Path]:
    """Write `out`/reward.json for a single report, else `out`/SYSTEM/TASK/reward.json (SAMPLE below it from 1 on).

    Of repeated judgments the first counts. Yields the files written. Raises UsageError.
    """
    formula = _formula(config)
    first = sorted(
        (card for card in cards if card.repeat == 0),
        key=lambda card: (card.system, card.task_id, card.sample),
    )
    grouped = itertools.groupby(first, lambda card: (card.system, card.task_id, card.sample))
    reports = {identity: {card.protocol: card for card in own} for identity, own in grouped}
    for (system, task, sample), own in reports.items():
        missing = formula.needed - own.keys()
        value = None if missing else formula.value(own, {}).value
        if value is None:
            continue
        scores = {name: score for name, score in formula.scores(own).items() if score is not None}
        folder = out if len(reports) == 1 else out / file_name(system) / file_name(task)
        folder = folder / str(sample) if sample and len(reports) > 1 else folder
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "reward.json"
        file.write_text(json.dumps({"reward": value, **scores}, indent=1) + "\n", encoding="utf-8")
        yield file


def _formula(config: RunConfig) -> Formula:
    formula = config.reward_formula.alone()
    if formula.flags:
        raise UsageError(
            "format: harbor: reward: penalties: needs flags of rollouts, which a run lacks; remove penalties:"
        )
    return formula
