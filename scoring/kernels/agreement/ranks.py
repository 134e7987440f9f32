"""Scores as codes: the place of each score among the distinct values of its row."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from adjudge.scoring.kernels.base.arrays import Floats, Integers
from adjudge.scoring.kernels.base.compiled import compiled, in_threads

Codes = npt.NDArray[np.int32]

FEW = 32  # at most so many distinct values make a row few-valued
ABSENT = -1


class Coded(NamedTuple):
    """Rows as codes 0, 1, ... from the smallest value up, ABSENT where a score is missing.

    codes[R, N]; groups[R]: how many distinct values; values[R, FEW]: these, for rows with at most FEW.
    """

    codes: Codes
    groups: Integers
    values: Floats

    @property
    def few_valued(self) -> npt.NDArray[np.bool_]:
        """Which rows have at most FEW distinct values."""
        return self.groups <= FEW


def coded(scores: Floats, threads: int | None = None) -> Coded:
    """The codes of `scores[R, N]`, NaN absent."""
    result = Coded(
        codes=np.empty(scores.shape, dtype=np.int32),
        groups=np.zeros(len(scores), dtype=np.int64),
        values=np.zeros((len(scores), FEW)),
    )

    def row(number: int) -> None:
        found = _code_few(scores[number], result.codes[number], result.values[number])
        if found > FEW:
            order = np.argsort(np.where(np.isnan(scores[number]), np.inf, scores[number]))  # NaN sorts slowly
            found = _code_sorted(scores[number], order, result.codes[number])
        result.groups[number] = found

    in_threads(row, range(len(scores)), threads)
    return result


@compiled
def _code_few(scores: Floats, codes: Codes, values: Floats) -> int:
    """Codes a row and keeps its distinct values; gives up, returning FEW + 1, if there are more than FEW."""
    found = 0
    for score in scores:
        if np.isnan(score):
            continue
        place = 0
        while place < found and values[place] < score:
            place += 1
        if place < found and values[place] == score:
            continue
        if found == FEW:
            return FEW + 1
        for later in range(found, place, -1):
            values[later] = values[later - 1]
        values[place] = score
        found += 1
    for item in range(scores.size):
        score = scores[item]
        code = 0
        for place in range(found):
            code += score > values[place]
        codes[item] = ABSENT if np.isnan(score) else code
    return found


@compiled
def _code_sorted(scores: Floats, order: Integers, codes: Codes) -> int:
    """Codes a row from the order that sorts it, NaN last; returns how many distinct values there are."""
    code = ABSENT
    last = np.nan
    for item in order:
        score = scores[item]
        if np.isnan(score):
            codes[item] = ABSENT
            continue
        if score != last:
            code += 1
            last = score
        codes[item] = code
    return code + 1


@compiled
def sorted_items(codes: Codes, groups: int) -> Integers:
    """The items of a row that are not absent, from its lowest code up, equal ones in order: a counting sort."""
    places = np.zeros(groups + 1, dtype=np.int64)
    for code in codes:
        if code != ABSENT:
            places[code + 1] += 1
    for group in range(groups):
        places[group + 1] += places[group]
    order = np.empty(places[groups], dtype=np.int64)
    for item in range(codes.size):
        if codes[item] != ABSENT:
            order[places[codes[item]]] = item
            places[codes[item]] += 1
    return order
