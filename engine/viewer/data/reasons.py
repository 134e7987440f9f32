"""The reasons that a judge gave for its verdicts, from the answers in the store."""

from collections.abc import Collection, Sequence

import msgspec

from adjudge.engine.store import JudgmentStore
from adjudge.scoring.contract.scorecard import Evidence

__all__ = ["reasons_given"]


class _Part(msgspec.Struct):
    """The answer for one of several items, as far as it is a reason."""

    analysis: str = ""


class _Answer(msgspec.Struct):
    analysis: str = ""
    items: dict[str, _Part] = {}


async def reasons_given(
    judgments: JudgmentStore, evidence: Sequence[Evidence], wanted: Collection[int]
) -> dict[int, str]:
    """The judge's reasons for the lines numbered `wanted` (from 1) of a scorecard's `evidence`, where it gave any.

    An answer to several items gives one for each, in the order of the lines that rest on it. Raises StoreError.
    """
    lines: dict[str, list[int]] = {}
    for n, line in enumerate(evidence, 1):
        if line.judgment:
            lines.setdefault(line.judgment, []).append(n)
    found: dict[int, str] = {}
    for key, numbers in lines.items():
        if any(n in wanted for n in numbers):
            row = await judgments.raw(bytes.fromhex(key))
            if row is not None and row.answer is not None:
                found |= dict(zip(numbers, _reasons(row.answer, len(numbers)), strict=True))
    return {n: reason for n, reason in found.items() if reason and n in wanted}


def _reasons(answer: str, count: int) -> list[str]:
    """One for each of `count` lines; none where the answer is of another shape."""
    try:
        said = msgspec.json.decode(answer, type=_Answer)
    except msgspec.MsgspecError:
        return [""] * count
    each = [part.analysis for part in said.items.values()]
    if len(each) == count:
        return each
    return [said.analysis] if count == 1 else [""] * count
