"""Which worker gets which case: nothing lost or doubled, tasks kept together, poison isolated, whatever dies when."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.engine.cluster.shards import DEATHS, Shards
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.scorecard import Scorecard
from tests.nightly import quick_or_whole


def cases(tasks: int, systems: int) -> list[Case]:
    return [
        Case(task=Task(id=str(t), prompt=""), report=Report(task_id=str(t), system=f"s{s}", text="x"))
        for t in range(tasks)
        for s in range(systems)
    ]


def cards(case: Case) -> tuple[Scorecard, ...]:
    card = Scorecard(
        protocol="p",
        system=case.report.system,
        task_id=case.task.id,
        sample=0,
        repeat=0,
        scores={},
        status="scored",
        judgments=("00",),
    )
    return (card,)


class World:
    """Workers that score, write and die at random; a poison case kills its worker."""

    def __init__(self, given: list[Case], seed: int, poison: frozenset[int] = frozenset()) -> None:
        self.random = random.Random(seed)
        self.suspects: set[int] = set()
        self.shards = Shards(given)
        self.poison = poison
        self.working: dict[str, dict[int, Case]] = {}
        self.finished: dict[str, dict[int, Case]] = {}
        self.written: list[tuple[str, str]] = []
        self.aside: list[tuple[str, str]] = []
        self.names = iter(f"w{i}" for i in range(10**6))

    def hire(self) -> None:
        name = next(self.names)
        self.shards.join(name)
        self.working[name], self.finished[name] = {}, {}

    def feed(self, name: str) -> None:
        alone = bool(self.working[name])
        got, _ = self.shards.give(name, self.random.randrange(1, 6))
        self.working[name] |= dict(got)
        assert len(self.working[name]) == self.shards.in_flight(name)
        assert not (alone and any(number in self.suspects for number, _ in got))

    def step(self, deadly: float) -> None:
        name = self.random.choice(list(self.working))
        self.feed(name)
        poisoned = self.poison & self.working[name].keys()
        if poisoned or self.random.random() < deadly:
            self.kill(name)
        elif self.working[name] and self.random.random() < 0.7:
            number = self.random.choice(list(self.working[name]))
            self.finished[name][number] = self.working[name].pop(number)
            self.shards.finish(name, number)
            self.suspects.discard(number)
        elif self.random.random() < 0.3 or name in self.shards.awaited():
            for number, case in self.finished[name].items():
                assert self.shards.write(name, number, cards(case))
                self.written.append((case.task.id, case.report.system))
            self.finished[name] = {}

    def kill(self, name: str) -> None:
        self.suspects |= self.working.pop(name).keys()
        del self.finished[name]
        self.aside += [(case.task.id, case.report.system) for case in self.shards.lose(name)]
        self.hire()


@settings(max_examples=quick_or_whole(30, 150))
@given(
    st.integers(1, 12),
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(0, 10**6),
    st.sampled_from([0, 0.02]),
)
def test_every_case_is_written_once(tasks, systems, workers, seed, deadly):
    world = World(cases(tasks, systems), seed)
    for _ in range(workers):
        world.hire()
    for _ in range(200_000):
        if world.shards.is_done:
            break
        world.step(deadly)
    everything = [(case.task.id, case.report.system) for case in cases(tasks, systems)]
    assert sorted(world.written + world.aside) == sorted(everything)
    assert deadly or not world.aside


@settings(max_examples=quick_or_whole(20, 60))
@given(st.integers(0, 10**6), st.integers(1, 4), st.sets(st.integers(0, 39), max_size=3))
def test_only_poison_cases_are_set_aside(seed, workers, poison):
    world = World(cases(10, 4), seed, frozenset(poison))
    for _ in range(workers):
        world.hire()
    while not world.shards.is_done:
        world.step(0)
    everything = cases(10, 4)
    assert sorted(world.aside) == sorted(
        (everything[number].task.id, everything[number].report.system) for number in poison
    )
    assert len(world.written) + len(world.aside) == 40


def test_poison_case_takes_a_stated_number_of_workers():
    shards = Shards(cases(1, 1))
    for death in range(DEATHS + 1):
        shards.join(f"w{death}")
        (given,) = shards.give(f"w{death}", 10)[0]
        assert given[0] == 0
        assert bool(shards.lose(f"w{death}")) == (death == DEATHS)
    assert shards.is_done


def test_task_stays_with_one_worker_until_a_case_is_written():
    everything = cases(1, 20)
    shards = Shards(everything)
    shards.join("a")
    shards.join("b")
    got, refresh = shards.give("a", 2)
    assert len(got) == 2 and not refresh
    assert shards.give("b", 5) == ([], False)
    shards.finish("a", 0)
    assert shards.give("b", 5) == ([], False)
    assert shards.awaited() == ["a"]
    shards.write("a", 0, cards(everything[0]))
    got, refresh = shards.give("b", 5)
    assert len(got) == 5 and refresh


def test_tasks_are_read_as_they_are_needed():
    read = []

    def source():
        for case in cases(100, 3):
            read.append(case)
            yield case

    shards = Shards(source())
    shards.join("a")
    shards.give("a", 4)
    assert len(read) <= 10


def test_finished_but_unwritten_cases_are_not_suspected():
    everything = cases(4, 1)
    shards = Shards(everything)
    shards.join("a")
    shards.give("a", 4)
    for number in range(3):
        shards.finish("a", number)
    assert shards.lose("a") == []
    shards.join("b")
    suspect, _ = shards.give("b", 10)
    assert [number for number, _ in suspect] == [3]
    assert shards.give("b", 10)[0] == []
    shards.finish("b", 3)
    assert sorted(number for number, _ in shards.give("b", 10)[0]) == [0, 1, 2]
