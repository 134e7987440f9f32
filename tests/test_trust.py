"""Trust in virtual time: judges tried before they are asked, pauses, patience, rewards on standby, budgets."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from adjudge.engine.config.run import Price, RunConfig
from adjudge.engine.errors import LimitReached
from adjudge.engine.evaluation.budget import Budget
from adjudge.engine.evaluation.gate import NOT_ASKED, Gate, Patience, RewardTrust, RunTrust
from adjudge.engine.evaluation.router import Router
from adjudge.judges import Asked, JudgeIdentity, Reply, Usage
from adjudge.judges.errors import JudgeError
from adjudge.judges.judgment import Probe, Ready, Verdict
from tests.virtual_time import run

YES = Reply(answer=Ready(ready="yes"), usage=Usage(10, 0, 10))
UNAVAILABLE = Reply(reason="judge_unavailable")
PATIENCE = Patience(silence_s=60, patience_s=1800, backoff_s=1, longest_s=30)


class Server:
    """A server that is up when `up(now)` says so, and takes `latency` seconds for an answer."""

    def __init__(
        self, up: Callable[[float], bool] = lambda now: True, latency: float = 1.0, name="m"
    ) -> None:
        self.identity = JudgeIdentity(name, name, "")
        self.up = up
        self.latency = latency
        self.asked = 0
        self.probed: list[float] = []
        self.window: int | None = None

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def answer(self, question, asked):
        self.asked += 1
        await asyncio.sleep(self.latency)
        return YES if self.up(self.now) else UNAVAILABLE

    async def probe(self, timeout_s=60.0):
        self.probed.append(self.now)
        if self.up(self.now):
            return (Verdict(where=self.identity.name, window=self.window),)
        return (Verdict(where="here", trouble="unreachable", line="here: no connection; start it"),)

    async def close(self):
        pass


def trusted(server, say=lambda line: None) -> Gate:
    return Gate(server, trust=RunTrust(server, PATIENCE, say))


async def ask(judge, count: int = 1, every: float = 0.0) -> list[Reply | BaseException]:
    async def one(number: int):
        await asyncio.sleep(number * every)
        return await judge.answer(Probe.make(), Asked(key=number.to_bytes(16, "big")))

    try:
        return await asyncio.gather(*map(one, range(count)), return_exceptions=True)
    finally:
        await judge.close()


def test_judge_down_at_the_start_is_never_asked() -> None:
    server, said = Server(lambda now: False), []
    found = run(ask(trusted(server, said.append), 20))
    assert all(isinstance(one, JudgeError) and "no connection" in str(one) for one in found)
    assert (server.asked, len(server.probed), said) == (0, 1, [])


def test_judge_is_probed_once_and_only_when_asked() -> None:
    server = Server()
    judge = trusted(server)
    assert server.probed == []
    assert run(ask(judge, 300)) == [YES] * 300
    assert len(server.probed) == 1


def test_outage_pauses_and_every_question_is_asked_again() -> None:
    server, said = Server(lambda now: not 10 < now < 500), []
    found = run(ask(trusted(server, said.append), 1000, every=0.1))
    assert found == [YES] * 1000
    assert [line.partition(";")[0] for line in said] == [
        "judge m: no longer answers",
        "judge m: answers again",
    ]
    assert server.probed[1] >= 70 and 10 < len(server.probed) < 30


def test_short_outage_does_not_pause() -> None:
    server, said = Server(lambda now: not 10 < now < 15), []
    assert run(ask(trusted(server, said.append), 1000, every=0.1)) == [YES] * 1000
    assert said == [] and len(server.probed) == 1


class Restarts(Server):
    """A server that answers three questions, and then only who comes after 7 s without any."""

    def __init__(self) -> None:
        super().__init__()
        self.times: dict[bytes, int] = {}
        self.out, self.peak, self.last = 0, 0, 0.0

    async def answer(self, question, asked):
        self.times[asked.key] = self.times.get(asked.key, 0) + 1
        self.asked += 1
        is_up = self.asked <= 3 or self.now - self.last >= 7
        self.last = self.now
        self.out += 1
        self.peak = max(self.peak, self.out) if self.asked > 8 else 0
        await asyncio.sleep(self.latency)
        self.out -= 1
        return YES if is_up else UNAVAILABLE


def test_judge_that_restarts_is_asked_one_question_at_a_time() -> None:
    server, said = Restarts(), []

    async def main():
        found = await ask(trusted(server, said.append), 8)
        return found, server.now

    found, took = run(main())
    assert found == [YES] * 8 and said == [] and took < 90
    assert server.peak == 1 and max(server.times.values()) == 3


def test_all_go_soon_after_an_outage() -> None:
    server = Server(lambda now: not 10 < now < 15)

    async def main():
        found = await ask(trusted(server), 200, every=0.1)
        return found, server.now

    found, took = run(main())
    assert found == [YES] * 200 and took < 60


def test_last_question_is_asked_a_few_times_in_an_outage() -> None:
    server = Server(lambda now: not 0.5 < now < 600)
    assert run(ask(trusted(server))) == [YES] and server.asked == 4


def test_judge_down_for_good_ends_the_run_after_its_patience() -> None:
    server = Server(lambda now: now < 10)
    found = run(ask(trusted(server), 1000, every=0.1))
    errors = [one for one in found if isinstance(one, JudgeError)]
    assert 880 < len(errors) < 920 and all(one == YES for one in found if one not in errors)
    assert "not back after 1800 s (patience_s): here: no connection" in str(errors[0])
    assert UNAVAILABLE not in found


def test_single_question_that_fails_does_not_stop_a_run() -> None:
    class Picky(Server):
        async def answer(self, question, asked):
            reply = await super().answer(question, asked)
            return UNAVAILABLE if asked.key == (3).to_bytes(16, "big") else reply

    server, said = Picky(), []
    found = run(ask(trusted(server, said.append), 100, every=1))
    assert found[3] == UNAVAILABLE and found.count(YES) == 99
    assert server.asked == 102 and said == []


def test_requests_without_a_reply_do_not_pause() -> None:
    class Slow(Server):
        async def answer(self, question, asked):
            await asyncio.sleep(600)
            return Reply(reason="judge_timeout")

    said: list[str] = []
    found = run(ask(trusted(Slow(), said.append), 50))
    assert {one.reason for one in found} == {"judge_timeout"} and said == []


def test_dead_server_of_four_is_left_out_by_name() -> None:
    servers = {name: Server(name="m") for name in "abcd"}
    servers["c"].up = lambda now: False
    said: list[str] = []
    assert run(ask(trusted(Router(servers), said.append), 400)) == [YES] * 400
    assert said == ["here: no connection; start it (left out; 3 of 4 servers answer)"]
    assert servers["c"].asked == 0 and min(servers[name].asked for name in "abd") > 0


def test_standby_waits_for_a_judge_that_is_away() -> None:
    """Questions wait until it is back, however long; probes are rare until one waits, and then frequent."""
    server, said = Server(lambda now: now > 100), []

    async def main():
        trust = RewardTrust(server, PATIENCE, said.append)
        judge = Gate(server, trust=trust)
        loop = asyncio.get_running_loop()
        trust.start()
        await asyncio.sleep(90)
        assert "no connection" in trust.trouble and len(server.probed) < 8
        reply = await judge.answer(Probe.make(), Asked(key=bytes(16)))
        assert trust.trouble is None and loop.time() < 103
        await judge.close()
        return reply

    assert run(main()) == YES
    assert [line.rpartition(";")[2] for line in said] == [
        " rewards are judge_unavailable when their time is up",
        "judge m: can be used again",
    ]
    assert len(server.probed) < 25


def test_standby_asks_again_what_an_outage_cut_off() -> None:
    server = Server(lambda now: not 10 < now < 50, latency=20)

    async def main():
        trust = RewardTrust(server, PATIENCE, lambda line: None)
        judge = Gate(server, trust=trust)
        reply = await judge.answer(Probe.make(), Asked(key=bytes(16)))
        assert 60 < asyncio.get_running_loop().time() < 80 and 0 < trust.seconds <= 20
        await judge.close()
        return reply

    assert run(main()) == YES and server.asked == 2


def test_standby_does_not_wait_for_another_model() -> None:
    class Wrong(Server):
        async def probe(self, timeout_s=60.0):
            self.probed.append(self.now)
            return (Verdict(where="here", trouble="wrong_model", line="here: serves another"),)

    server = Wrong()

    async def main():
        trust = RewardTrust(server, PATIENCE, lambda line: None)
        judge = Gate(server, trust=trust)
        for _ in range(3):
            assert await judge.answer(Probe.make(), Asked(key=bytes(16))) is NOT_ASKED
        assert asyncio.get_running_loop().time() == 0 and "serves another" in trust.trouble
        await judge.close()

    run(main())
    assert server.asked == 0


def test_standby_doubts_a_judge_that_is_silent() -> None:
    class Hangs(Server):
        async def answer(self, question, asked):
            await asyncio.sleep(1e6)

    async def main():
        server = Hangs(lambda now: now < 1)
        trust = RewardTrust(server, PATIENCE, lambda line: None)
        judge = Gate(server, trust=trust)
        asking = asyncio.ensure_future(judge.answer(Probe.make(), Asked(key=bytes(16))))
        await asyncio.sleep(5)
        assert trust.trouble is not None
        late = asyncio.ensure_future(judge.answer(Probe.make(), Asked(key=bytes(16))))
        await asyncio.sleep(50)
        assert not late.done()
        late.cancel()
        asking.cancel()
        await judge.close()

    run(main())


def budget(**limits: object) -> Budget:
    return Budget(msgspec.convert({"tasks": "", "prices": {"m": PRICE}, **limits}, RunConfig))


PRICE = Price(cost_per_million_prompt_tokens=1e5, cost_per_million_completion_tokens=1e5)  # 2 a question


@pytest.mark.parametrize(
    ("limits", "answered", "said"),
    [
        ({"max_questions": 30}, 30, "max_questions: 30"),
        ({"max_cost": 100.0}, 50, "max_cost: 100"),
        ({}, 200, ""),
    ],
)
def test_budget_stops_at_its_limit_once_all_is_answered(limits, answered, said) -> None:
    server = Server()
    found = run(ask(Gate(server, budget=budget(**limits)), 200, every=2 if "max_cost" in limits else 0.1))
    assert found.count(YES) == answered == server.asked
    errors = [one for one in found if isinstance(one, LimitReached)]
    assert len(errors) == 200 - answered and all(str(one).startswith(said) for one in errors)
