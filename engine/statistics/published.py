"""Published figures to set beside one's own.

Metrics and systems may be spelled as papers do: case, spaces and punctuation make no difference, and a paper's names
stand for ours.
"""

import csv
import io
import math
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.engine.config.metrics import Name, only
from adjudge.engine.errors import UsageError, unread
from adjudge.engine.runs.board import PublishedAgreement
from adjudge.engine.runs.scores import figure
from adjudge.fetchers.separated import separator_of
from adjudge.scoring.kernels.agreement.correlations import correlations

__all__ = ["Published", "agreement_with", "figures_for", "published_names", "read_published"]

_NAMES = ("system", "model")
_NOT_WORDS = re.compile(r"[\W_]+")
_OURS = re.compile(r"[a-z0-9.:]+_[a-z0-9_.:]+")
ALIASES = {
    "comp": "race.comprehensiveness",
    "depth": "race.insight",
    "inst": "race.instruction_following",
    "read": "race.readability",
    "overallscore": "race.overall",
    "effc": "fact.e_cit_code",
    "ecit": "fact.e_cit_code",
    "effectivecitations": "fact.e_cit_code",
    "averageeffectivecitations": "fact.e_cit_code",
    "cacc": "fact.c_acc_code",
    "citacc": "fact.c_acc_code",
    "citationaccuracy": "fact.c_acc_code",
    "p": "livedr.precision",
    "prec": "livedr.precision",
    "r": "livedr.recall",
    "rec": "livedr.recall",
    "f1score": "livedr.f1",
    "avg": "dr3.average",
    "informationrecall": "dr3.ir",
    "citationcoverage": "dr3.cc",
    "factualaccuracy": "dr3.fa",
    "instructionfollowing": "dr3.if",
    "depthquality": "dr3.dq",
    "intescore": "rigorous.integrated",
    "integratedscore": "rigorous.integrated",
    "sdrift": "rigorous.drift",
    "semanticdrift": "rigorous.drift",
    "tboost": "rigorous.boost",
    "trustworthyboost": "rigorous.boost",
    "ctoken": "rigorous.contribution_per_token",
    "cpertoken": "rigorous.contribution_per_token",
}
"""The papers' names of metrics, plain, by ours. DeepResearch Bench's C. Acc. and E. Cit. are its code's figures."""


class Published(msgspec.Struct, frozen=True):
    """A published figure, in the units in which the metric is displayed (47.1 for an `overall` of 0.471)."""

    system: str
    metric: str
    value: float


def read_published(file: str | Path) -> tuple[Published, ...]:
    """The figures of a CSV file. Raises UsageError for an unreadable or invalid file.

    Either one line per figure with the columns `system`, `metric` and `value`, or one line per system with one column
    per metric; the system's column may be called `model`. Cells that are empty or `-` are left out, and so are columns
    without any number (a link, a licence); any other cell must be a number.
    """
    path = Path(file)
    try:
        lines = path.read_text(encoding="utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(lines, newline=""), delimiter=separator_of(lines)))
    except (OSError, UnicodeError, csv.Error) as error:
        raise UsageError(f"published: {path} cannot be read: {unread(error)}; correct the path") from error
    columns = [name for name in (rows[0] if rows else {}) if name]
    named = next((name for name in columns if name.strip().lower() in _NAMES), None)
    if named is None:
        raise UsageError(
            f"published: {path}: there is no column called system or model; rename the column of systems"
        )
    if {"metric", "value"} <= set(columns):
        figures = [(line, row[named], row["metric"], row["value"]) for line, row in enumerate(rows, 2)]
    else:
        metrics = [
            one for one in columns if one != named and any(_number(row[one]) is not None for row in rows)
        ]
        figures = [(line, row[named], one, row[one]) for line, row in enumerate(rows, 2) for one in metrics]
    found = []
    for line, system, metric, text in figures:
        value = _number(text)
        if value is None and text and text.strip() not in ("", "-"):
            raise UsageError(
                f"published: {path}:{line}: {metric}: {text!r} is not a number; leave the cell empty or write -"
            )
        if system and metric and value is not None:
            found.append(Published(system.strip(), metric.strip(), value))
    if not found:
        raise UsageError(f"published: {path}: no figures; write the columns system, metric and value")
    for (system, metric), several in groupby(sorted(found, key=_name), _name):
        if len({one.value for one in several}) > 1:
            raise UsageError(f"published: {path}: {system!r} has several values of {metric}")
    return tuple(found)


def _name(one: Published) -> tuple[str, str]:
    return one.system, one.metric


def published_names(published: Sequence[Published], known: Sequence[Name]) -> dict[str, Name | None]:
    """The metric among `known` that every published name means, None where it means none.

    Raises UsageError for a name that means several.
    """
    found: dict[str, Name | None] = {}
    for said in dict.fromkeys(one.metric for one in published):
        fits = {name: fit for name in known if (fit := _fit(said, name))}
        best = [name for name, fit in fits.items() if fit == max(fits.values())]
        found[said] = only(said, best, "published") if best else None
    return found


def _fit(said: str, name: Name) -> int:
    """How well a published name fits a metric: 2 for our own name, 1 for another spelling or a paper's, 0 not."""
    if said in (name.full, name.metric):
        return 2
    plain = _plain(said)
    if _OURS.fullmatch(said):
        return 0
    if ALIASES.get(plain) == name.full:
        return 1
    return int(
        plain in (_plain(name.metric), _plain(name.full)) and plain not in _TAKEN.get(name.protocol, ())
    )


def figures_for(published: Sequence[Published], metric: Name, systems: Sequence[str]) -> dict[str, float]:
    """The figures of a metric by system, under the names of our own `systems` where they are spelled otherwise.

    `published` are those of this metric; where a system has several, our own name of the metric goes first.
    """
    own: dict[str, list[str]] = {}
    for name in systems:
        own.setdefault(_plain(name), []).append(name)
    found: dict[str, tuple[int, float]] = {}
    for one in published:
        rank = _fit(one.metric, metric)
        same = [one.system] if one.system in systems else own.get(_plain(one.system), [])
        name = same[0] if len(same) == 1 else one.system
        if rank > found.get(name, (0, 0.0))[0]:
            found[name] = rank, one.value
    return {name: value for name, (_, value) in found.items()}


def _plain(name: str) -> str:
    return _NOT_WORDS.sub("", name.casefold())


_TAKEN = {
    protocol: {plain for plain, whole in ALIASES.items() if whole.startswith(f"{protocol}.")}
    for protocol in ("race", "fact", "livedr", "dr3", "rigorous")
}
"""By protocol, the plain names that stand for another of its metrics."""


def agreement_with(own: dict[str, float], published: dict[str, float]) -> PublishedAgreement:
    """How `own` values agree with `published` ones in the same units, by system."""
    both = sorted(own.keys() & published.keys())
    values = np.array([[own[name] for name in both], [published[name] for name in both]], np.float64)
    if len(both) < 2:
        difference = float(values[0, 0] - values[1, 0]) if both else None
        return PublishedAgreement(n=len(both), tau=None, rho=None, pearson=None, mean_difference=difference)
    found = correlations(values)
    return PublishedAgreement(
        n=len(both),
        tau=_coefficient(found.kendall),
        rho=_coefficient(found.spearman),
        pearson=_coefficient(found.pearson),
        mean_difference=float((values[0] - values[1]).mean()),
    )


def _number(text: str | None) -> float | None:
    try:
        value = float((text or "").strip().rstrip("%"))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _coefficient(values: npt.NDArray[np.float64] | None) -> float | None:
    return None if values is None else figure(values[0, 1])
