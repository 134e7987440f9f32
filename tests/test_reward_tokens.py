"""Rollouts that come as tokens: their text, whose it is, and tokenizers that cannot be had."""

import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from adjudge.engine.rewards import tokens as module
from adjudge.engine.rewards.model import RewardModel
from adjudge.engine.rewards.reward import RewardError, as_items
from adjudge.engine.rewards.tokens import masked, worded
from adjudge.engine.serving.client import RewardClient
from tests.rewarding import rewarded
from tests.scheduled import served

SEARCH = "I look it up.<|im_end|>\n"
PAGE = "<|im_start|>user\nIt states fact number 0. The measured value was 42 units.<|im_end|>\n"
REPORT = "It states fact number 0. The measured value was 42 units.<|im_end|>"
EMPTY = "Nothing was found.<|im_end|>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tokenizer of bytes, and the tokens of chats."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([SEARCH, PAGE, REPORT], trainer)
    path = tmp_path_factory.mktemp("policy")
    made.save(str(path / "tokenizer.json"))
    return path


def rolled(folder: Path, *turns: tuple[str, int], **more: Any) -> dict[str, Any]:
    """The item of a rollout whose turns are the policy's (1) or not (0)."""
    known = Tokenizer.from_file(str(folder / "tokenizer.json"))
    ids, mask = list[int](), list[int]()
    for text, own in turns:
        found = known.encode(text, add_special_tokens=False).ids
        ids += found
        mask += [own] * len(found)
    return {"task_id": "0", "tokens": {"ids": ids, "mask": mask, "tokenizer": str(folder), **more}}


def test_only_what_the_policy_wrote_is_paid(tmp_path: Path, folder: Path) -> None:
    """The page says what is asked for, and the policy does not."""
    items = [
        rolled(folder, (SEARCH, 1), (PAGE, 0), (REPORT, 1)),
        rolled(folder, (SEARCH, 1), (PAGE, 0), (EMPTY, 1)),
        {"task_id": "0", "text": REPORT.removesuffix("<|im_end|>")},
    ]
    with RewardModel(rewarded(tmp_path)) as model:
        own, none, text = model.score_sync(items)
    assert own.value == text.value and own.value > 0 and own.scores["unclear_turns"] == 0
    assert none.value == 0


async def test_text_and_spans_are_those_of_the_tokens(folder: Path) -> None:
    turns = ((SEARCH, 1), ("Température: 4 °C, 漢字 🙂\n", 0), (REPORT, 1))
    (item,) = await worded(as_items([rolled(folder, *turns)]))
    assert item.tokens is None and item.text == "".join(text for text, _ in turns)
    assert item.mask is not None
    assert [item.text[start:end] for start, end in item.mask] == [SEARCH, REPORT]
    (whole,) = await worded(as_items([rolled(folder, (REPORT, 1), mask=[])]))
    assert whole.mask == ((0, len(REPORT)),)
    assert masked([], [], str) == ("", [])


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        ({"ids": [1, 2], "mask": [1]}, "2 ids with a mask of 1"),
        ({"ids": [-1]}, "must be a whole number of at least 0"),
        ({"ids": [1], "mask": [2]}, "2 is unknown; use '0' or '1'"),
        ({"tokenizer": ""}, "length >= 1"),
        ({"tokenizer": "no/such/model/here"}, "no tokenizer.json that can be had"),
        ({"more": 1}, "unknown field"),
    ],
)
async def test_tokens_that_cannot_be_read_are_refused(
    folder: Path, tokens: dict[str, Any], says: str
) -> None:
    given = {"ids": [5, 6], "tokenizer": str(folder), **tokens}
    with pytest.raises(RewardError, match=says):
        await worded(as_items([{"task_id": "0", "tokens": given}]))


async def test_text_and_tokens_exclude_each_other(folder: Path) -> None:
    with pytest.raises(RewardError, match="text, messages or tokens, one of them"):
        as_items([{**rolled(folder, (REPORT, 1)), "text": REPORT}])


async def test_broken_tokenizer_and_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    item = {"task_id": "0", "tokens": {"ids": [1], "tokenizer": str(tmp_path)}}
    with pytest.raises(RewardError, match="cannot be read"):
        await worded(as_items([item]))
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(RewardError, match="not installed"):
        await worded(as_items([item]))


async def test_tokenizer_is_loaded_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module._decoder.cache_clear()
    loads = []
    found = module._file
    monkeypatch.setattr(module, "_file", lambda *given: loads.append(given) or found(*given))
    await worded(as_items([rolled(folder, (REPORT, 1))] * 3))
    await worded(as_items([rolled(folder, (SEARCH, 1))]))
    assert loads == [(str(folder), True)]


async def test_client_reads_folders_and_a_server_none(tmp_path: Path, folder: Path) -> None:
    item = rolled(folder, (SEARCH, 1), (PAGE, 0), (REPORT, 1))
    async with served(rewarded(tmp_path)) as url, aiohttp.ClientSession() as session:
        with RewardClient(url) as client:
            (found,) = await client.score([item])
        assert found.value is not None and found.value > 0
        for name in (str(folder), "nobody/nothing", "../..", "a/b/c"):
            sent = {**item, "tokens": {**item["tokens"], "tokenizer": name}}
            async with session.post(f"{url}/v1/rewards", json={"items": [sent]}) as reply:
                assert reply.status == 400 and "tokens: " in (await reply.json())["error"]
