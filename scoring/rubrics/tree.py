"""Rubric trees with gates: leaves are met or not, and every parent says how it follows from its children.

The shape is that of Mind2Web 2's rubrics. A leaf is 1 if its criterion is met, else 0. Of a parent's children, those
that are `critical` are gates: unless each of them is 1 in full, the parent is 0. Past the gates it is

- `all`: the least of its children,
- `any`: the greatest of its children,
- `weighted`: the mean of its children that are not critical, by their weights; 1 if all are critical.

Every rule rises with every leaf, so the bounds of a tree of which leaves are missing are those with all of them unmet
and with all of them met; there is no value then, for a gate may be among them.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, ClassVar, Literal

import msgspec

from adjudge.scoring.answers.parts import EVERY, Measure, measured
from adjudge.scoring.contract.case import Case, GoldError
from adjudge.scoring.contract.labels import MET_LABELS, MET_OR_NOT, Labelled
from adjudge.scoring.contract.protocol import ExplainedCriterion, Tools
from adjudge.scoring.contract.scorecard import Evidence, Metric, MetricWords, Scorecard, Value
from adjudge.scoring.rubrics.asking import ItemsAQuestion, give_points
from adjudge.scoring.rubrics.criteria import Criterion
from adjudge.scoring.rubrics.figures import MAX_CRITERIA

__all__ = ["Node", "Tree", "leaves", "value_of"]

MAX_DEPTH = 30

TREE = MetricWords(
    source="adjudge, in the shape of Mind2Web 2",
    of={
        "partial_completion": "The value of the task's tree of criteria, from leaves that are met or not.",
        "success": "Whether the tree's value is 1: 1 or 0.",
        "leaves_met": "The leaves that are met, each counting the same, gates aside.",
    },
)

Weight = Annotated[float, msgspec.Meta(gt=0, le=1e9)]


class Node(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A leaf, which has a `criterion`, or a parent, which has `children` and `combine`s them."""

    criterion: str = ""
    name: str = ""
    children: tuple["Node", ...] = ()
    combine: Literal["all", "any", "weighted"] = "weighted"
    critical: bool = False
    weight: Weight = 1.0

    def __post_init__(self) -> None:
        if bool(self.criterion.strip()) == bool(self.children):
            raise ValueError("a node has either a `criterion` or `children`")


def leaves(node: Node, above: tuple[str, ...] = (), depth: int = 0) -> Iterator[tuple[Node, tuple[str, ...]]]:
    """The leaves from left to right, each with the names of the nodes above it. Raises ValueError for too deep ones."""
    if depth > MAX_DEPTH:
        raise ValueError(f"a tree is at most {MAX_DEPTH} nodes deep")
    if not node.children:
        yield node, above
    for child in node.children:
        yield from leaves(child, (*above, node.name) if node.name else above, depth + 1)


def value_of(node: Node, met: Sequence[float]) -> float:
    """The value of the tree below `node`, 0 to 1, for its leaves from left to right (1 met, 0 not)."""
    return _value(node, iter(met))


def _value(node: Node, met: Iterator[float]) -> float:
    if not node.children:
        return next(met)
    values = [_value(child, met) for child in node.children]  # all of them: each takes its leaves
    pairs = list(zip(node.children, values, strict=True))
    if any(child.critical and value < 1.0 for child, value in pairs):
        return 0.0
    match node.combine:
        case "all":
            return min(values)
        case "any":
            return max(values)
    free = [(child.weight, value) for child, value in pairs if not child.critical]
    if all(value == 1.0 for _, value in free):  # none, or a mean that rounding could keep from being whole
        return 1.0
    return sum(weight * value for weight, value in free) / sum(weight for weight, _ in free)


Met = Sequence[tuple[Criterion, float]]


class Tree(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a report by the task's tree of criteria (gold `tree`, a `Node`).

    `partial_completion` is the tree's value, `success` whether it is 1, `leaves_met` the share of its leaves. Up to
    `items_a_question` leaves share a question.
    """

    name: ClassVar[str] = "tree"
    words: ClassVar = TREE

    items_a_question: ItemsAQuestion = 1
    """How many leaves the judge gets in one question."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The tree's value, whether it is whole, and its leaves alone."""
        return (
            Metric(name="partial_completion", headline=True),
            Metric(name="success"),
            Metric(name="leaves_met", shown=False),
        )

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """`metrics`. Raises GoldError."""
        self._tree(case)
        return self.metrics

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """Ask for every leaf, then let the values rise to the root. Raises GoldError."""
        root, found = self._tree(case)
        criteria = [
            Criterion(criterion=leaf.criterion, points=1.0, id=" / ".join((*above, leaf.name)).strip(" /"))
            for leaf, above in found
        ]
        answers, evidence = await give_points(criteria, case, tools, self.items_a_question)
        rules: dict[str, Measure[Criterion]] = {
            "partial_completion": partial(_whole, root),
            "success": partial(_success, root),
            "leaves_met": _share,
        }
        values: dict[str, Value] = {name: measured(answers, rule, EVERY) for name, rule in rules.items()}
        return Scorecard.of(self.name, case, values, evidence)

    async def explained(self, case: Case, tools: Tools) -> list[ExplainedCriterion]:
        """The leaves, those that are gates said to be. Raises GoldError."""
        return [
            ExplainedCriterion(
                what=leaf.criterion,
                explanation="Critical: unless it is met, its parent is 0." if leaf.critical else "",
                tags=tuple(above),
            )
            for leaf, above in self._tree(case)[1]
        ]

    @staticmethod
    def labelled(line: Evidence) -> Labelled | None:
        """Whether a leaf is met, which `leaves_met` counts."""
        return Labelled.of(MET_OR_NOT, MET_LABELS.get(line.outcome.kind, ""), "leaves_met")

    def _tree(self, case: Case) -> tuple[Node, list[tuple[Node, tuple[str, ...]]]]:
        root = case.gold(self.name, Node)
        try:
            found = list(leaves(root))
        except ValueError as error:
            raise GoldError("gold_invalid", f"task {case.task.id}: {error}") from error
        if len(found) > MAX_CRITERIA:
            raise GoldError(
                "gold_invalid", f"task {case.task.id}: {len(found):,} leaves, at most {MAX_CRITERIA:,}"
            )
        return root, found


def _whole(root: Node, met: Met) -> float:
    return value_of(root, [value for _, value in met])


def _success(root: Node, met: Met) -> float:
    return float(_whole(root, met) == 1.0)


def _share(met: Met) -> float:
    return sum(value for _, value in met) / len(met)
