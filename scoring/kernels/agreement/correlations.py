"""Pearson's r, Spearman's rho and Kendall's tau-b among all raters at once, over the items each pair has scored.

Pairs of raters with at most 32 distinct values each are counted into a table, from which all three follow.
Others are summed (Pearson) or walked in one rater's order (Spearman and Kendall).
"""

from collections.abc import Collection
from typing import Literal, NamedTuple, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.scoring.kernels.agreement.contingency import table_row
from adjudge.scoring.kernels.agreement.product_moments import centred, moment_row
from adjudge.scoring.kernels.agreement.rank_pairs import rank_row
from adjudge.scoring.kernels.agreement.ranks import ABSENT, Coded, coded, sorted_items
from adjudge.scoring.kernels.base.arrays import Flags, Floats, Integers, as_scores
from adjudge.scoring.kernels.base.compiled import in_threads
from adjudge.scoring.kernels.base.errors import KernelError

__all__ = ["Coefficient", "Correlations", "correlations"]

Coefficient = Literal["pearson", "spearman", "kendall"]


class Correlations(msgspec.Struct, frozen=True):
    """Coefficients of all pairs of raters, `[R, R]` each and symmetric; None for those not asked for.

    n_used: items that both raters scored. defined: False, and every coefficient NaN, where these are fewer
    than two or one of the raters gave all of them the same score.
    """

    pearson: Floats | None
    spearman: Floats | None
    kendall: Floats | None
    n_used: Integers
    defined: Flags


def correlations(
    scores: npt.ArrayLike,
    *,
    coefficients: Collection[Coefficient] = get_args(Coefficient),
    threads: int | None = None,
) -> Correlations:
    """Correlates the raters of `scores[R raters, N items]` pair by pair; NaN is a missing score.

    Raises KernelError for another shape, infinite scores, or an unknown or no coefficient.
    """
    values = _validated(scores, coefficients)
    found = _undefined(len(values))
    few = np.zeros(len(values), dtype=np.bool_)
    if "spearman" in coefficients or "kendall" in coefficients:
        codes = coded(values, threads)
        few = codes.few_valued
        _tabulate(np.flatnonzero(few), codes, found, threads)
        _walk_ranks(codes, coefficients, found, threads)
    if "pearson" in coefficients:
        _sum_moments(values, few, found, threads)
    pearson, spearman, kendall = (
        np.clip(matrix, -1.0, 1.0) if name in coefficients else None
        for name, matrix in zip(get_args(Coefficient), found, strict=False)
    )
    some = next(matrix for matrix in (pearson, spearman, kendall) if matrix is not None)
    return Correlations(pearson, spearman, kendall, n_used=found.n_used, defined=~np.isnan(some))


class _Found(NamedTuple):
    """What the kernels fill, `[R, R]` each."""

    pearson: Floats
    spearman: Floats
    kendall: Floats
    n_used: Integers


def _undefined(raters: int) -> _Found:
    pearson, spearman, kendall = (np.full((raters, raters), np.nan) for _ in range(3))
    return _Found(pearson, spearman, kendall, np.zeros((raters, raters), dtype=np.int64))


def _validated(scores: npt.ArrayLike, coefficients: Collection[Coefficient]) -> Floats:
    values = as_scores(scores, 2)
    if len(values) == 0:
        raise KernelError("scores: no raters")
    unknown = set(coefficients) - set(get_args(Coefficient))
    if unknown or not coefficients:
        raise KernelError(f"coefficients: {sorted(coefficients)}, expected some of {get_args(Coefficient)}")
    return values


def _tabulate(raters: Integers, codes: Coded, found: _Found, threads: int | None) -> None:
    """All three coefficients of the few-valued `raters` among each other."""
    groups = codes.groups[raters]
    rows = codes.codes[raters]
    small = np.where(rows == ABSENT, groups[:, None], rows).astype(np.uint8)
    values = centred(codes.values[raters, : int(groups.max(initial=0))])

    def row(first: int) -> None:
        pearson, spearman, kendall, n_used = found
        table_row(first, raters, small, groups, values, pearson, spearman, kendall, n_used)

    in_threads(row, range(len(raters)), threads)


def _sum_moments(scores: Floats, few: Flags, found: _Found, threads: int | None) -> None:
    """Pearson's r of every pair that is not `few`-valued on both sides."""
    values = centred(scores)

    def row(first: int) -> None:
        moment_row(first, values, few, found.pearson, found.n_used)

    in_threads(row, range(len(values)), threads)


def _walk_ranks(
    codes: Coded, coefficients: Collection[Coefficient], found: _Found, threads: int | None
) -> None:
    """Spearman's rho and Kendall's tau-b of every pair that is not few-valued on both sides."""
    few = codes.few_valued
    rho, tau = "spearman" in coefficients, "kendall" in coefficients

    def row(first: int) -> None:
        if not few[first:].all():
            order = sorted_items(codes.codes[first], int(codes.groups[first]))
            rank_row(first, order, codes.codes, codes.groups, few, rho, tau, *found[1:])

    in_threads(row, range(len(few)), threads)
