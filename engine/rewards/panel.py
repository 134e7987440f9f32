"""What the rewards of a training look like lately: whether they still teach, and whether they still mean the same.

- A group is tied if all its rollouts have the same reward: a step learns nothing from it.
- A reward is saturated if it is the highest that the formula can give.
- A criterion drifts by the mean of its last points minus the mean of its first. A rise in one alone, while others
  stay, is what a policy looks like that has found out how to please the judge there.

A server shows these numbers on `/metrics`. The log has them once in 256 rewards, with the share of each flag and the
reasons of missing rewards, and warns where nearly all groups are tied.
"""

import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Sequence

import msgspec

from adjudge.engine.rewards.flags import FLAGS, UNCLEAR
from adjudge.engine.rewards.reward import Reward
from adjudge.engine.telemetry.logs import event

__all__ = ["Panel"]

_log = logging.getLogger(__name__)

WINDOW = 256
"""Rewards that a share is over."""
GROUPS = 64
"""Groups that a share is over."""
POINTS = 32
"""Values of a criterion that a mean is over."""
CRITERIA = 10_000
"""Criteria that are watched: those that were judged last."""
FEWEST_GROUPS = 20
MOST_TIED = 0.9
"""The share of tied groups, of at least 20, from which the log warns: hardly a step has something to learn from."""
NAMED = 3
_SAME = 1e-9

Criterion = tuple[str, str, str]
"""Its task, protocol and id."""


class _Course(msgspec.Struct):
    """The first and the last points of a criterion."""

    first: list[float]
    last: deque[float]

    def add(self, value: float) -> None:
        (self.first if len(self.first) < POINTS else self.last).append(value)

    @property
    def drift(self) -> float | None:
        """The last mean minus the first; None before both are over enough points."""
        if len(self.last) < POINTS:
            return None
        return sum(self.last) / POINTS - sum(self.first) / POINTS


class Panel:
    """Watches the rewards of one scorer."""

    def __init__(self) -> None:
        self._rewards: deque[tuple[Reward, bool]] = deque(maxlen=WINDOW)
        self._groups: deque[bool] = deque(maxlen=GROUPS)
        self._courses: OrderedDict[Criterion, _Course] = OrderedDict()
        self._unsaid = 0

    def add(self, tasks: Sequence[str], rewards: Sequence[Reward], highest: float | None) -> None:
        """Take the rewards of one call, with the task of each; `highest` is the most that one can be, if known."""
        groups: dict[str, list[float]] = {}
        for task, reward in zip(tasks, rewards, strict=True):
            top = reward.value is not None and highest is not None and reward.value >= highest - _SAME
            self._rewards.append((reward, top))
            if reward.value is not None:
                groups.setdefault(task, []).append(reward.value)
            for part in reward.parts:
                if part.value is not None:
                    self._course((task, part.protocol, part.id)).add(part.value)
        self._groups.extend(max(one) - min(one) < _SAME for one in groups.values() if len(one) > 1)
        self._unsaid += len(rewards)
        if self._unsaid >= WINDOW:
            self._unsaid = 0
            self._say()

    @property
    def tied(self) -> float:
        """The share of the last 64 groups that are tied; 0 before the first."""
        return sum(self._groups) / len(self._groups) if self._groups else 0.0

    @property
    def saturated(self) -> float:
        """The share of the last 256 rewards that are saturated, of those with a value."""
        tops = [top for reward, top in self._rewards if reward.value is not None]
        return sum(tops) / len(tops) if tops else 0.0

    @property
    def rise(self) -> float:
        """The largest drift upwards of any criterion, in its points; 0 if none rises."""
        return max([0.0, *(drift for _, drift in self._drifts())])

    @property
    def fall(self) -> float:
        """The largest drift downwards of any criterion, in its points; 0 if none falls."""
        return max([0.0, *(-drift for _, drift in self._drifts())])

    def _course(self, criterion: Criterion) -> _Course:
        course = self._courses.setdefault(criterion, _Course([], deque(maxlen=POINTS)))
        self._courses.move_to_end(criterion)
        if len(self._courses) > CRITERIA:
            self._courses.popitem(last=False)
        return course

    def _drifts(self) -> list[tuple[Criterion, float]]:
        drifts = ((criterion, course.drift) for criterion, course in self._courses.items())
        return [(criterion, drift) for criterion, drift in drifts if drift is not None]

    def _say(self) -> None:
        """One line of the log, and a warning where the rewards no longer tell rollouts apart."""
        rewards = [reward for reward, _ in self._rewards]
        reasons = Counter(str(one.reason) for one in rewards if one.value is None)
        flags = {
            name: sum(one.scores.get(name) or 0.0 for one in rewards) / len(rewards)
            for name in (*FLAGS, UNCLEAR)
        }
        drifts = sorted(self._drifts(), key=lambda one: -abs(one[1]))[:NAMED]
        event(
            _log,
            "rewards",
            count=len(rewards),
            missing={reason: count / len(rewards) for reason, count in reasons.items()},
            tied=self.tied,
            saturated=self.saturated,
            flags={name: share for name, share in flags.items() if share},
            drifts={" ".join(criterion): drift for criterion, drift in drifts},
        )
        if len(self._groups) >= FEWEST_GROUPS and self.tied >= MOST_TIED:
            _log.warning(
                "%d of the last %d groups have one reward for all their rollouts, so a step learns nothing from them: "
                "the rollouts are alike, or the judge says the same to all; adjudge judge tests it",
                sum(self._groups),
                len(self._groups),
            )
