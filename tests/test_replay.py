"""The log of rewards, and `adjudge rewards replay`: the same rollouts by another judge and by another formula."""

import json
import os
import shlex
from itertools import groupby
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from adjudge.engine.commands.rewards import replay
from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.errors import UsageError
from adjudge.engine.rewards import run_log
from adjudge.engine.rewards.model import RewardModel
from adjudge.engine.rewards.run_log import Logged, Refused, at, places
from adjudge.engine.rewards.scorer import open_rewards
from tests.commands import one_line, run
from tests.reward_pages import block
from tests.reward_server import judge_server
from tests.worlds import world

THOUGHT = "SECRET thought"
METRIC = {"metric": "score_clipped"}


ANIMALS = ("zebra", "heron", "walrus", "lynx")
RUBRICS = [{"criterion": f"{animal} sighting", "points": points} for points, animal in enumerate(ANIMALS, 1)]


def told(task: int, step: int, number: int) -> str:
    """A report that tells of as many animals, from another one on for each task and step."""
    seen = [ANIMALS[(task + step + n) % 4] for n in range(number)]
    return f"<think>{THOUGHT}</think>Report. " + " ".join(f"A {animal} sighting was made." for animal in seen)


def trained(folder: Path, **reward: object) -> tuple[Path, Path]:
    """A configuration, and the log of a training run by it: 3 tasks x 4 rollouts at each of two steps."""
    log = folder / "log.jsonl"
    path = world(folder, reward={**METRIC, "log": {"file": str(log), **reward}})
    with RewardModel(path) as model:
        for step in (7, 8):
            items = [
                {"task_id": str(task), "text": told(task, step, number), "sample": number, "rubrics": RUBRICS}
                for task in range(3)
                for number in range(4)
            ]
            assert all(one.value is not None for one in model.score_sync(items, step=step))
    return path, log


def logged(log: Path) -> list[Logged]:
    refused = Refused()
    found = at(log, list(places(log, refused)))
    assert refused.count == 0
    return found


@pytest.fixture(scope="module")
def session(tmp_path_factory) -> tuple[Path, Path]:
    return trained(tmp_path_factory.mktemp("trained"))


class TestLog:
    def test_log_holds_what_was_said_and_judged_and_given(self, session):
        found = logged(session[1])
        assert len(found) == 24 and {one.judge for one in found} == {"lexical"}
        assert {one.step for one in found} == {7, 8} and {one.task for one in found} == {"0", "1", "2"}
        assert all(THOUGHT in one.item.text and one.reward.parts for one in found)
        assert session[1].stat().st_mode & 0o077 == 0

    def test_rewards_of_two_formulas_are_not_mixed(self, tmp_path, capsys):
        """Another weight, other rubrics or another judge is another formula; the same ones are the same."""
        path, log = trained(tmp_path)
        trained(tmp_path)
        assert len({one.formula for one in logged(log)}) == 1
        other = {**METRIC, "penalties": {"echo": 0.1}, "log": {"file": str(log)}}
        with RewardModel(world(tmp_path / "other", reward=other)) as model:
            model.score_sync([{"task_id": "0", "text": told(0, 0, 1), "rubrics": RUBRICS}])
        first, second = dict.fromkeys(one.formula for one in logged(log))
        code, _, error = run(capsys, "rewards", "replay", str(log), str(path))
        assert code == 2 and f"{first} (48 rollouts), {second} (1 rollout)" in one_line(error)
        code, out, _ = run(capsys, "rewards", "replay", str(log), str(path), "--formula", second, "--json")
        assert code == 0 and json.loads(out)["rollouts"] == 1

    def test_log_of_reports_leaves_the_rest_out(self, tmp_path):
        path, log = trained(tmp_path, keep="report")
        assert THOUGHT not in log.read_text()
        with RewardModel(path) as model:
            again = model.score_sync([one.item for one in logged(log)][:4])
        assert [one.value for one in again] == [one.reward.value for one in logged(log)][:4]

    def test_log_goes_on_after_a_line_that_was_cut_off(self, tmp_path):
        path, log = trained(tmp_path)
        with log.open("ab") as torn:
            torn.write(log.read_bytes()[:100])
        with RewardModel(path) as model:
            model.score_sync([{"task_id": "0", "text": "x"}])
        refused = Refused()
        assert len(list(places(log, refused))) == 25
        assert [(one.file, one.line) for one in refused.examples] == [(str(log), 25)]

    def test_full_log_or_disk_costs_no_reward(self, tmp_path, caplog):
        for name, given in {"full": {"bytes": 2000}, "disk": {"file": "/dev/full"}}.items():
            log = {"file": str(tmp_path / "log.jsonl"), **given}
            with RewardModel(world(tmp_path / name, reward={**METRIC, "log": log})) as model:
                for n in range(3):
                    items = [{"task_id": "0", "text": f"{n} {k}"} for k in range(4)]
                    assert all(one.value is not None for one in model.score_sync(items))
        assert sum("not logged any more" in record.message for record in caplog.records) == 2
        assert (tmp_path / "log.jsonl").stat().st_size <= 2000

    async def test_canaries_are_not_logged(self, tmp_path):
        log = tmp_path / "log.jsonl"
        config = RunConfig.load(world(tmp_path, reward={**METRIC, "log": {"file": str(log)}}))
        async with open_rewards(config) as scorer:
            await scorer.score([{"task_id": "0", "text": "a canary"}], repeat=5, alone=True)
            await scorer.score([{"task_id": "0", "text": "a rollout"}])
            made = scorer.log
        assert [one.item.text for one in logged(log)] == ["a rollout"]
        assert (made.written, made.skipped) == (1, 0)

    async def test_log_that_cannot_be_opened_is_said(self, tmp_path):
        config = world(tmp_path, reward={**METRIC, "log": {"file": str(tmp_path / "none" / "log")}})
        with pytest.raises(ConfigError, match=r"reward\.log\.file: .* cannot be opened"):
            async with open_rewards(RunConfig.load(config)):
                pass


class TestReplay:
    async def test_another_judge_is_compared_with_the_first(self, session, tmp_path):
        path, log = session
        with judge_server() as url:
            judge = {"backend": "openai", "url": url, "model": "mock"}
            found = await replay(log, RunConfig.load(path, judge=judge))
            with RewardModel(world(tmp_path, judge=judge, reward=METRIC)) as other:
                lines = logged(log)
                after = [one.value for one in other.score_sync([line.item for line in lines], deadline=60)]
        before = [line.reward.value for line in lines]
        assert (found.rollouts, found.both, found.groups, found.lost) == (24, 24, 6, {})
        assert (found.judges_before, found.judge_after) == (("lexical",), "mock")
        assert found.mean_before == pytest.approx(np.mean(before))
        assert found.mean_after == pytest.approx(np.mean(after))
        by_scipy = (pearsonr(before, after)[0], spearmanr(before, after)[0], kendalltau(before, after)[0])
        assert (found.pearson, found.spearman, found.kendall) == pytest.approx(by_scipy)
        pairs = zip(before, after, strict=True)
        groups = [
            np.array([pair for _, pair in group])
            for _, group in groupby(
                zip([one.group for one in lines], pairs, strict=True), key=lambda one: one[0]
            )
        ]
        taus = [kendalltau(*group.T)[0] for group in groups]
        taus = [tau for tau in taus if not np.isnan(tau)]
        assert found.kendall_in_groups == (pytest.approx(np.mean(taus)) if taus else None)
        sides = [np.sign(group - group.mean(axis=0)) for group in groups]
        assert found.flipped == pytest.approx(np.mean([s[:, 0] * s[:, 1] < 0 for s in sides]))
        changed = [
            not set(np.flatnonzero(g[:, 0] == g[:, 0].max())) & set(np.flatnonzero(g[:, 1] == g[:, 1].max()))
            for g in groups
        ]
        assert found.best_changed == sum(changed)
        gains = np.array(after) - np.array(before)
        assert [one.after - one.before for one in found.gained] == pytest.approx(
            sorted(gains[gains > 0])[::-1][:10]
        )
        assert [one.after - one.before for one in found.fell] == pytest.approx(sorted(gains[gains < 0])[:10])
        assert found.said.startswith("Within groups")

    async def test_another_formula_needs_no_judge(self, session, tmp_path):
        """The answers of the run are stored, so a judge that is away is not missed."""
        path, log = trained(tmp_path)
        settings = msgspec.yaml.decode(path.read_bytes())
        path.write_bytes(msgspec.yaml.encode({**settings, "reward": {"weights": {"score_clipped": 2.0}}}))
        found = await replay(log, RunConfig.load(path))
        assert found.kendall == 1.0 and found.mean_after == pytest.approx(2 * found.mean_before)
        assert (found.best_changed, found.flipped, found.fell) == (0, 0.0, ())
        values = {line.reward.value for line in logged(log)}
        assert {one.before for one in found.gained} <= values

    async def test_groups_stay_whole_in_every_batch(self, session, tmp_path, monkeypatch):
        _, log = session
        settings = {**METRIC, "group": {"kind": "pairwise"}}
        config = RunConfig.load(world(tmp_path, reward=settings))
        found = []
        for batch in (1, 256):
            monkeypatch.setattr("adjudge.engine.commands.rewards.BATCH", batch)
            found.append(await replay(log, config))
        assert found[0] == found[1] and found[0].both == 24 and found[0].mean_after > found[0].mean_before

    async def test_lines_may_stand_in_any_order(self, session, tmp_path):
        path, log = session
        turned = tmp_path / "log.jsonl"
        turned.write_bytes(b"".join(reversed(log.read_bytes().splitlines(keepends=True))))
        config = RunConfig.load(path)
        one, other = await replay(log, config), await replay(turned, config)
        for name in ("mean_after", "pearson", "kendall", "kendall_in_groups", "flipped", "changed", "said"):
            assert getattr(one, name) == getattr(other, name)

    def test_command_prints_tables_and_a_sentence(self, session, capsys):
        path, log = session
        code, out, _ = run(capsys, "rewards", "replay", log, path)
        assert code == 0 and "Kendall's tau within groups" in out and "groups whose order changed most" in out
        assert out.strip().splitlines()[-1].startswith("Within groups") and out.strip().endswith(".")
        code, out, _ = run(capsys, "rewards", "replay", log, path, "--json")
        assert code == 0 and json.loads(out)["both"] == 24

    def test_commands_of_the_page_work(self, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        reward = msgspec.yaml.decode(block("replay", "yaml"))["reward"]
        path = world(tmp_path, reward=reward)
        path.rename(tmp_path / "rewards.yaml")
        world(tmp_path, reward={"weights": {"score": 1.0}}).rename(tmp_path / "other.yaml")
        with RewardModel(tmp_path / "rewards.yaml") as model:
            model.score_sync([{"task_id": "0", "text": told(0, 0, n), "rubrics": RUBRICS} for n in range(4)])
        for typed in block("replay", "sh").splitlines():
            name, *arguments = shlex.split(typed)
            code, out, _ = run(capsys, *arguments)
            assert name == "adjudge" and code == 0 and "Within groups" in out

    def test_invalid_lines_are_named_and_the_others_replayed(self, session, tmp_path, capsys, monkeypatch):
        path, log = session
        monkeypatch.setattr(run_log, "LONGEST", 100_000)
        good = log.read_bytes().splitlines()[0]
        row = json.loads(good)
        bad = [
            b"\xff\xfe",
            b"[" * 5000,
            b'{"time": 1}',
            good.replace(b'"text"', b'"texts"'),
            json.dumps({**row, "item": {**row["item"], "messages": []}}).encode(),
            json.dumps({**row, "reward": {**row["reward"], "value": "much"}}).encode(),
            b'"' + b"x" * 250_000 + b'"',
            good[:50],
        ]
        hostile = tmp_path / "log.jsonl"
        hostile.write_bytes(b"\n".join([*bad, b"", good.replace(b"Report", b"[red]\\u001b[31m")]) + b"\n")
        code, out, err = run(capsys, "rewards", "replay", hostile, path)
        assert code == 3 and "\x1b[31m" not in out
        for line in range(1, len(bad) + 1):
            assert f"{hostile}:{line}: " in err
        assert "lines that hold no rollout" in out and "no group has an order to compare" in out

    def test_wrong_use_is_one_line(self, session, tmp_path, capsys):
        path, log = session
        code, _, err = run(capsys, "rewards", "replay", tmp_path / "none.jsonl", path)
        assert code == 2 and "log: " in one_line(err)
        dead = "openai:http://127.0.0.1:9/v1#m"
        code, _, err = run(capsys, "rewards", "replay", log, path, "--judge", dead)
        assert code == 1 and "127.0.0.1:9" in one_line(err)

    async def test_schedule_needs_the_steps_of_the_log(self, tmp_path):
        path, log = trained(tmp_path)
        settings = msgspec.yaml.decode(path.read_bytes())
        reward = {"weights": {"score_clipped": {"weight": {7: 1.0, 8: 3.0}}}}
        path.write_bytes(msgspec.yaml.encode({**settings, "reward": reward}))
        found = await replay(log, RunConfig.load(path))
        means = [group.mean_after / group.mean_before for group in found.changed if group.step == 8]
        assert means == pytest.approx([3.0] * 3)
        without = [msgspec.structs.replace(line, step=None) for line in logged(log)]
        log.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in without))
        with pytest.raises(UsageError, match="log: line 1: step: missing"):
            await replay(log, RunConfig.load(path))

    def test_log_that_changes_meanwhile_is_refused(self, session, tmp_path):
        copy = tmp_path / "log.jsonl"
        copy.write_bytes(session[1].read_bytes())
        found = list(places(copy, Refused()))
        os.truncate(copy, 10)
        with pytest.raises(UsageError, match="changed while it was read"):
            at(copy, found)
