"""What counts as the report of a rollout, what it brings along, and that no other text of it is paid."""

import asyncio
import json
import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.config.reward import ReportRules
from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.formats.messages import Message, pages_in
from adjudge.engine.rewards.model import RewardModel
from adjudge.engine.rewards.report import Written, prompt_in, report_in
from adjudge.engine.rewards.reward import RewardError, as_items, own_gold
from adjudge.engine.rewards.scorer import open_rewards
from adjudge.engine.serving.dialects import DIALECTS
from adjudge.judges import Reply, ScriptedJudge
from adjudge.judges.marks import THOUGHT_TAGS
from adjudge.scoring.rubrics.asking import PointsGiven
from tests.clocks import Timed, timed
from tests.gaming import MARKS, PLAIN, TRIES, as_text
from tests.reward_server import judge_server
from tests.rewarding import best, rewarded, scripted
from tests.worlds import world

RULES = ReportRules()
MARKUP = [
    "<think>",
    "</think>",
    "<tool_response>",
    "</tool_response>",
    "<|im_start|>assistant\n",
    "[TOOL_CALLS]",
    "\n```\n",
]

# A question, a call, its result and a report in the shapes of several APIs and data sets.
SHAPES: dict[str, list[dict[str, Any]]] = {
    "gemini": [
        {"role": "user", "parts": [{"text": "Why?"}]},
        {
            "role": "model",
            "parts": [{"text": "MARKS", "thought": True}, {"functionCall": {"name": "search"}}],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "search", "response": {}}}]},
        {"role": "model", "parts": [{"text": "MARKS", "thought": True}, {"text": "The report."}]},
    ],
    "bedrock": [
        {"role": "user", "content": [{"text": "Why?"}]},
        {
            "role": "assistant",
            "content": [{"text": "MARKS"}, {"toolUse": {"toolUseId": "a", "name": "search"}}],
        },
        {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": "MARKS"}]}}]},
        {"role": "assistant", "content": [{"reasoningContent": {}}, {"text": "The report."}]},
    ],
    "langchain": [
        {"type": "human", "content": "Why?"},
        {"type": "ai", "content": "MARKS", "tool_calls": [{"name": "search", "args": {}}]},
        {"type": "tool", "content": "MARKS"},
        {"type": "AIMessageChunk", "content": ["The ", {"type": "text", "text": "report."}]},
    ],
    "sharegpt": [
        {"from": "human", "value": "Why?"},
        {"from": "gpt", "value": "MARKS<tool_call>{}</tool_call>"},
        {"from": "observation", "value": "MARKS"},
        {"from": "gpt", "value": "<think>MARKS</think>The report."},
    ],
    "harmony": [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "channel": "commentary", "recipient": "functions.search", "content": "{}"},
        {"role": "tool", "content": "MARKS"},
        {"role": "assistant", "channel": "analysis", "content": "MARKS"},
        {"role": "assistant", "channel": "final", "content": "The report."},
    ],
}


def written(text: str, **rules: Any) -> tuple[str, bool]:
    found = report_in(text, msgspec.convert(rules, ReportRules))
    return found.text, found.is_whole


class TestReport:
    @pytest.mark.parametrize(
        "text",
        [
            "A report.\n\n  With blanks  ",
            "About <s>old</s> prices, a < b > c, [INSTALL] and <thinker>.",
            "The tag `<think>` opens a thought and `</think>` closes it; `<tool_call>` calls.",
            "",
        ],
    )
    def test_text_without_markup_stays_as_it_is(self, text):
        assert written(text) == (text, True)

    @pytest.mark.parametrize(
        "before",
        [
            "<think>MARKS</think>",
            "MARKS</think>\n",
            "<think>a</think>MARKS</think>",
            "<THINK>MARKS</THINK>",
            "<thinking mode='x'>MARKS <think> more</thinking>",
            "[THINK]MARKS[/THINK]",
            "◁think▷MARKS◁/think▷",
            *(f"<{name}>MARKS</{name}>" for name in THOUGHT_TAGS),
            '<tool_call>{"items": [MARKS]}</tool_call>',
            "<tool_response>MARKS</tool_response>",
            "MARKS<tool_call>{}</tool_call><tool_response>x</think></tool_response>",
            "MARKS\n<tool_call>{}</tool_call>\nuser\n<tool_response>x</tool_response>\nassistant\n",
            "<think>MARKS <tool_call>{}</tool_call><tool_response>x</tool_response>MARKS</think>",
            "MARKS<|im_end|>\n<|im_start|>tool\nMARKS<|im_end|>\n<|im_start|>assistant\n",
            "MARKS<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
            "MARKS<end_of_turn>\n<start_of_turn>user\nMARKS<end_of_turn>\n<start_of_turn>model\n",
            "<|channel|>analysis<|message|>MARKS<|end|><|start|>assistant<|channel|>final<|message|>",
            "MARKS<｜User｜>MARKS<｜Assistant｜>",
            "<s>[INST] MARKS [/INST]",
            "<|START_THINKING|>MARKS<|END_THINKING|><|START_RESPONSE|>",
            "<｜tool▁calls▁begin｜>MARKS<｜tool▁calls▁end｜><｜tool▁outputs▁begin｜>MARKS<｜tool▁outputs▁end｜>",
            "<|tool_calls_section_begin|>MARKS<|tool_calls_section_end|><|im_end|><|im_system|>tool<|im_middle|>"
            "MARKS<|im_end|><|im_assistant|>assistant<|im_middle|>",
            "<longcat_think>MARKS</longcat_think></longcat_s> [Round 1] USER:MARKS ASSISTANT:",
            "<minimax:tool_call>MARKS</minimax:tool_call>[e~[\n]~b]tool\nMARKS[e~[\n]~b]ai\n",
            "[TOOL_CALLS]MARKS</s>[TOOL_RESULTS]MARKS[/TOOL_RESULTS]",
            "<|begin_of_thought|>MARKS<|end_of_thought|>MARKS<|begin_of_solution|>",
            "<seed:think>MARKS</seed:think>MARKS<seed:eos><seed:bos>user\nMARKS<seed:eos><seed:bos>assistant\n",
            "MARKS<SPECIAL_12>\n<SPECIAL_11>User\nMARKS\n<SPECIAL_11>Assistant\n",
            "MARKS<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>MARKS<|start_of_role|>assistant<|end_of_role|>",
            "MARKS<turn|>\n<|turn>user\nMARKS<turn|>\n<|turn>model\n<|channel>thought\nMARKS<channel|>",
            "MARKS[|endofturn|]\n[|user|]MARKS\n[|assistant|]",
            "MARKS<role>HUMAN</role>MARKS<role>ASSISTANT</role>",
            "MARKS<|begin_search_query|>MARKS<|end_search_query|><|begin_search_result|>MARKS<|end_search_result|>",
            "<function=search>MARKS</function><search>MARKS</search><information>MARKS</information>",
            "<|python_start|>MARKS<|python_end|><|eom|><|header_start|>ipython<|header_end|>MARKS<|eot|>"
            "<|header_start|>assistant<|header_end|>\n\n",
            "<|tools_prefix|>MARKS<|tools_suffix|>[[MARKS], MARKS <think>]",
            "<|tool_calls|>MARKS<|calls|>\n<|begin|>tool<|tool_response|>MARKS<|end|>\n<|begin|>assistant<|content|>",
            "<|tool_calls_begin|>MARKS<|tool_calls_end|><|EOT|><|BOT|>tool_response\nMARKS<|EOT|><|BOT|>assistant\n",
            "MARKS <sep> human: MARKS <sep> assistant: ",
            "<start_function_call>MARKS<end_function_call><start_function_response>MARKS<end_function_response>",
            "MARKS</s>USER: MARKS ASSISTANT: ",
            "MARKS<|separator|>\n\nHuman: MARKS<|separator|>\n\nAssistant: ",
            "MARKS<|end_of_sentence|>User: MARKS\nAssistant: ",
            "MARKS<|end_of_turn|>GPT4 Correct User: MARKS<|end_of_turn|>GPT4 Correct Assistant: ",
            "MARKS</think:opensource><tool_calls:opensource>MARKS</tool_calls:opensource><｜hy_eos:opensource｜>"
            "<tool_responses:opensource>MARKS</tool_responses:opensource><｜hy_Assistant:opensource｜>"
            "<think:opensource>MARKS</think:opensource>",
            "MARKS<|close|>think<|sep|><|open|>response<|sep|>MARKS<|close|>response<|sep|><|open|>tools<|sep|>MARKS"
            '<|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|><|open|>message role="tool" tool="search"<|sep|>'
            'MARKS<|close|>message<|sep|><|end_of_msg|><|open|>message role="assistant"<|sep|><|open|>think<|sep|>MARKS'
            "<|close|>think<|sep|><|open|>response<|sep|>",
            "<|function_call|>MARKS<|message_sep|>\n\nfunction result<|role_sep|>\nMARKS<|message_sep|>\n\n"
            "assistant<|role_sep|>\n",
            "MARKS<|end|>\n<|begin_tool_result|>\nMARKS\n<|begin_assistant|>\nMARKS\n[BEGIN FINAL RESPONSE]\n",
            "MARKS</think>MARKS</assistant>\n<user>MARKS</user>\n<assistant><think>MARKS</think>",
        ],
    )
    @pytest.mark.parametrize(
        "end",
        [
            *("", "<|im_end|>\n", "</s>", " <eos> <pad><pad>", "<｜end▁of▁sentence｜>", "<|return|>", "[e~["),
            *(
                "<｜hy_eos:opensource｜>",
                "<|message_sep|>\n\n",
                "</assistant>\n",
                "<|END_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
            ),
            *(
                "<|END_RESPONSE|>",
                "</longcat_s>",
                "<seed:eos>",
                "<SPECIAL_12>",
                "<turn|>",
                "<|END_OF_TURN_TOKEN|>",
            ),
        ],
    )
    def test_what_comes_before_the_last_turn_is_left_out(self, before, end):
        assert written(f"{before}The report.{end}") == ("The report.", True)
        is_clear = report_in(f"{before}The report.{end}", RULES).is_clear
        assert is_clear == (not before.startswith("<tool_call>")), "a call whose result has no mark"

    @pytest.mark.parametrize(
        ("text", "report"),
        [
            ("<think>MARKS", ""),
            ("The report.<think>MARKS", "The report."),
            ("The report.<tool_call>MARKS", "The report."),
            ("The report.<tool_response>MARKS", "The report."),
            ("MARKS<tool_call>{}</tool_call><tool_response>x</tool_response>", ""),
            ("MARKS<|im_end|>\n<|im_start|>user\n<tool_response>x</tool_response><|im_end|>", "MARKS"),
            ("<|channel|>analysis<|message|>MARKS", ""),
            ("Let me see.<tool_call>MARKS</tool_call><|im_end|>", "Let me see."),
            (
                "Let me see.<｜tool▁calls▁begin｜>MARKS<｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
                "Let me see.",
            ),
            ("Let me see.<search>finish lines</search><think>MARKS</think>", "Let me see."),
            ("Let me see.<tool_call>MARKS</tool_call><|im_end|>\n<|im_start|>user\nGo on.", "Let me see."),
        ],
    )
    def test_rollout_without_an_end_is_truncated(self, text, report):
        assert written(text) == (report, False)

    @pytest.mark.parametrize(
        "call",
        [
            '<tool_call>{"name": "finish", "arguments": {}}</tool_call><|im_end|>',
            "<function=final_answer></function>",
            '[TOOL_CALLS][{"name": "submit", "arguments": {}}]</s>',
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>finish\n{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        ],
    )
    def test_call_that_says_the_report_is_done_ends_it(self, call):
        assert report_in(f"The report.\n{call}", RULES) == Written("The report.", True)

    def test_thinking_inside_of_a_report_is_cut_out(self):
        assert written("One. <think>MARKS</think>Two.") == ("One. Two.", True)
        assert written("One.\n> <think>\n> MARKS\n> </think>\nTwo.") == ("One.\n> \nTwo.", True)

    @pytest.mark.parametrize(
        "text",
        [
            "The report.\n\n```xml\n<think>a</think>\n<tool_call>b</tool_call>\n```\n\nIts end.",
            "The report.\n\n~~~\n<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n~~~\n\nIts end.",
            "The user\nasks, and the assistant\nanswers. user feedback: none.",
            "```python\nrequest.user\n```\nA list: `[TOOL_CALLS]`, `<|eot_id|>`.",
        ],
    )
    def test_quoted_marks_are_text(self, text):
        assert report_in(text, RULES) == Written(text, True)

    @pytest.mark.parametrize(
        "before", ["<think>a\n```\nb</think>", "<tool_response>```</tool_response>", "```\na<|im_end|>\n"]
    )
    def test_fence_outside_of_the_report_or_left_open_quotes_nothing(self, before):
        text = f"{before}<|im_start|>tool\nMARKS<|im_end|>\n<|im_start|>assistant\nThe report.\n```\nb\n```"
        assert report_in(text, RULES) == Written("The report.\n```\nb\n```", True)

    @pytest.mark.parametrize(
        "text",
        [
            "</think>\n\nuser\nGo on.\nassistant\n<think>x</think>The report.",
            "analysisPerhaps.assistantfinalThe report.",
            'functions.search:0{"q": "a"}tool## Return\nMARKS.assistant# The report.',
            '[{"name": "search", "arguments": {"q": "a"}}]{"call_id": "a", "content": "MARKS"}The report.',
            "search(a)ipython\n\nMARKS.assistant\n\nThe report.",
            "```tool_code\nsearch(a)\n```\nuser\n```tool_output\nMARKS\n```\nmodel\nThe report.",
            "Thought: a\nAction: search[b]\nObservation: MARKS\nFinal Answer: The report.",
            "<think>a</think>MARKS<think>b</think>The report.",
            "<execute_ipython>search(a)</execute_ipython>\nOBSERVATION:\nMARKS\nThe report.",
            "MARKS<|unknown_token|>The report.",
            "Thought 1: a\nAction 1: Search[b]\nObservation 1: MARKS\nAction 2: Finish[The report.]",
            "思考：a\n行动：搜索[b]\n观察：MARKS\n最终答案：The report.",
            'search{"q": "a"}MARKS.The report.',
            "thought\nPerhaps.The report.",
            "call:search{query:a}response:search{value:MARKS}The report.",
            "Perhaps the quay.# The report",
            '{"thought": "a", "tool": "search", "args": {}}\nMARKS\nThe report.',
            'search\n{"query": "a"}\nMARKS\nThe report.',
            'Perhaps.[{"search": {"q": "a"}}][MARKS]The report.',
            "<musings>MARKS</musings>The report.",
            "<think>a</think>\n\n<inner_voice>MARKS</inner_voice>\n\nThe report.",
            "A draft.User: MARKS\nAssistant: The report.",
            "A draft.USER: MARKS ASSISTANT: The report.",
        ],
    )
    def test_text_whose_turns_have_lost_their_marks_is_not_clear(self, text):
        assert not report_in(text, RULES).is_clear

    @pytest.mark.parametrize(
        ("pieces", "report"),
        [
            (["+The report, ", "+and its end."], Written("The report, and its end.", True)),
            (["+a", "-MARKS", "+The report. 😀", "-<|im_end|>\n"], Written("The report. 😀", True)),
            (["+a", "-MARKS<think>", "+b</think>The report."], Written("The report.", True)),
            (["+The report.", "-<|im_end|>\n<|im_start|>user\nThanks."], Written("The report.", True)),
            (["+The report.", "-MARKS"], Written("The report.", False)),
            (
                ["+<tool_call>a</tool_call>", "-<|im_start|>assistant\nMARKS", "+The report."],
                Written("The report.", True),
            ),
            (["-MARKS"], Written("", True)),
        ],
    )
    def test_mask_says_what_the_policy_wrote(self, pieces, report):
        mask, text = [], ""
        for piece in pieces:
            mask += [(len(text), len(text) + len(piece) - 1)] if piece[0] == "+" else []
            text += piece[1:]
        assert report_in(text, RULES, tuple(mask)) == report

    def test_mask_does_not_make_lost_thoughts_clear(self):
        text = "Perhaps the quay.# The report"
        assert not report_in(text, RULES, ((0, len(text)),)).is_clear

    @pytest.mark.parametrize(
        "text",
        ['{"name": "search", "parameters": {"q": "a"}}', '[{"name": "search", "arguments": {"q": "a"}}]\n'],
    )
    def test_call_alone_is_no_report(self, text):
        assert written(text) == ("", False)

    @pytest.mark.parametrize(
        "text",
        [
            "The format:\n\n    <think>\n    plan\n    </think>\n\nIt has an end.",
            "The header:\n\n    <|im_start|>assistant\n    a<|im_end|>\n\nIt has an end.",
            "Models write \\<think> and \\</think>, in HTML &lt;think&gt;. Others \\<|im_start|>user.",
            "<h1>The mill</h1>\n<p>It has an end.</p>",
            "<report>It has an end.</report>",
            "<note>It has an end.</note>",
            "The users said:\n\nUser: it works.\n\nAssistant: it does not.",
            'The paper calls "<think>" a tag and “</think>” its end.',
            "思考：a question in a report",
            'The set \\mathrm{"a": 1} and C#, F#, issue 4.#5',
        ],
    )
    def test_tags_shown_as_examples_are_clear(self, text):
        assert report_in(text, RULES) == Written(text, True)

    @given(st.lists(st.tuples(st.booleans(), st.text(max_size=12) | st.sampled_from(MARKUP)), max_size=12))
    def test_nothing_but_the_policys_own_words_is_paid_under_a_mask(self, pieces):
        mask, text = [], ""
        for is_own, piece in pieces:
            piece = piece if is_own else f"{piece}MARKS"
            mask += [(len(text), len(text) + len(piece))] if is_own else []
            text += piece
        assert "MARKS" not in report_in(text, RULES, tuple(mask)).text

    def test_report_may_stand_between_markers_and_need_an_end(self):
        between = ["<answer>", "</answer>"]
        assert written("<think><answer>no</answer></think>a <answer>yes</answer> b", between=between) == (
            "yes",
            True,
        )
        assert written("MARKS", between=between) == ("", True)
        assert written("<answer>cut", between=between) == ("cut", False)
        assert written("The report.<|im_end|>", end="<|im_end|>") == ("The report.", True)
        assert written("The report", end="<|im_end|>") == ("The report", False)

    @pytest.mark.parametrize(
        ("messages", "report"),
        [
            (
                [("assistant", "MARKS"), ("tool", "MARKS"), ("assistant", "The report.")],
                ("The report.", True),
            ),
            ([("assistant", "MARKS"), ("assistant", "The report.<|im_end|>")], ("The report.", True)),
            ([("assistant", "<think>MARKS</think>The report."), ("user", "Thanks.")], ("The report.", True)),
            ([("assistant", "MARKS"), ("tool", "MARKS")], ("MARKS", False)),
            ([("tool", "MARKS")], ("", False)),
            ([("user", "MARKS")], ("", True)),
            ([], ("", True)),
        ],
    )
    def test_last_assistant_message_counts(self, messages, report):
        found = report_in(tuple(Message(role=role, content=text) for role, text in messages), RULES)
        assert found == Written(*report)

    def test_last_message_that_only_calls_a_tool_is_truncated(self):
        turns = (
            {"role": "assistant", "content": "MARKS"},
            {"role": "assistant", "content": None, "tool_calls": [{}]},
        )
        assert report_in(msgspec.convert(turns, tuple[Message, ...]), RULES) == Written("", False)
        items = ({"role": "assistant", "content": "MARKS"}, {"type": "function_call", "name": "f"})
        assert report_in(msgspec.convert(items, tuple[Message, ...]), RULES) == Written("MARKS", False)

    @pytest.mark.parametrize("shape", SHAPES)
    def test_messages_of_every_api_are_read(self, shape):
        asked, *turns = SHAPES[shape]
        (item,) = as_items([{"prompt": [asked], "messages": turns}])
        assert item.asked == "Why?"
        assert report_in(item.messages, RULES) == Written("The report.", True)

    @pytest.mark.parametrize(
        ("message", "fault"),
        [
            ({"role": "narrator", "content": MARKS}, "role 'narrator' is unknown"),
            ({"content": MARKS}, "role 'message' is unknown"),
            ({"author": "assistant", "body": MARKS}, "role 'message' is unknown"),
            ({"role": "assistant", "content": [{"body": MARKS}]}, "no piece of its content"),
        ],
    )
    def test_message_of_no_known_shape_is_refused(self, message, fault):
        with pytest.raises(RewardError, match=rf"item 0: messages\[0\]: {fault}"):
            as_items([{"task_id": "1", "messages": [message]}])

    @pytest.mark.parametrize(
        "last",
        [
            {"content": "Let me see.", "tool_calls": [{"function": {"name": "search"}}]},
            {"content": [{"type": "text", "text": "Let me see."}, {"type": "tool_use", "name": "search"}]},
            {"parts": [{"text": "Let me see."}, {"functionCall": {"name": "search"}}]},
            {"content": [{"text": "Let me see."}, {"toolUse": {"name": "search"}}, {"text": "\n"}]},
            {"content": [{"type": "server_tool_use"}, {"type": "web_search_tool_result"}]},
            {"content": "Let me see.", "channel": "analysis"},
            {"content": "Let me see.", "channel": "commentary", "recipient": "functions.search"},
        ],
    )
    def test_message_that_ends_with_a_call_or_a_thought_is_no_report(self, last):
        said = ({"role": "assistant", "content": "Before."}, {"role": "user", "content": "Go on."})
        turns = msgspec.convert((*said, {"role": "assistant", **last}), tuple[Message, ...])
        assert not report_in(turns, RULES).is_whole

    @pytest.mark.parametrize(
        "calls",
        [
            {"tool_calls": [{"type": "function", "function": {"name": "finish", "arguments": "{}"}}]},
            {"tool_calls": [{"name": "final_answer", "args": {}, "id": "a"}]},
            {"function_call": {"name": "Finish"}},
        ],
    )
    @pytest.mark.parametrize("after", [[], [{"role": "tool", "content": "ok"}]])
    def test_report_beside_a_call_that_finishes_is_whole(self, calls, after):
        turns = [{"role": "assistant", "content": "The report.", **calls}, *after]
        found = report_in(msgspec.convert(turns, tuple[Message, ...]), RULES)
        assert found == Written("The report.", True)

    def test_text_before_the_last_result_in_a_message_is_no_report(self):
        pieces = [
            {"type": "text", "text": "MARKS"},
            {"type": "server_tool_use", "name": "web_search"},
            {"type": "web_search_tool_result", "content": [{"type": "web_search_result"}]},
            {"type": "text", "text": "The "},
            {"type": "text", "text": "report."},
        ]
        turns = msgspec.convert([{"role": "assistant", "content": pieces}], tuple[Message, ...])
        assert report_in(turns, RULES) == Written("The report.", True)

    @pytest.mark.parametrize(
        "prompt",
        [
            "  Why?\n",
            "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n<think>\n",
            "<|im_start|>user\nOld?<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n",
            "system\nBe brief.\nuser\nWhy?\nassistant\n",
            "<s>[INST] Why? [/INST]",
            "<bos><start_of_turn>user\nWhy?<end_of_turn>\n<start_of_turn>model\n",
        ],
    )
    def test_prompt_is_read_out_of_a_chat_template(self, prompt):
        assert prompt_in(prompt) == "Why?"


class TestUnclear:
    ITEM: ClassVar = {
        "task_id": "1",
        "text": f"Thought: a\nAction: b\nObservation: {MARKS}\nFinal Answer: {PLAIN}",
    }

    def test_unclear_turns_are_flagged_and_said_once(self, tmp_path, caplog):
        spans = [[self.ITEM["text"].index(PLAIN), len(self.ITEM["text"])]]
        with RewardModel(rewarded(tmp_path)) as model:
            plain, masked, again = model.score_sync([self.ITEM, {**self.ITEM, "mask": spans}, self.ITEM])
        assert (plain.scores["unclear_turns"], plain.reason) == (1.0, None)
        assert masked.scores["unclear_turns"] == 0.0 and masked.value < plain.value == again.value
        assert sum("cannot be told apart" in record.message for record in caplog.records) == 1

    def test_strict_gives_no_reward_instead_of_a_guess(self, tmp_path):
        with RewardModel(rewarded(tmp_path, report="strict")) as model:
            unclear, clear = model.score_sync([self.ITEM, {"task_id": "1", "text": MARKS}])
        assert (unclear.value, unclear.reason, unclear.n_asked) == (None, "report_unclear", 0)
        assert clear.value is not None

    @pytest.mark.parametrize("mask", [[[0, 9_999]], [[2, 1]], [[0, 3], [2, 4]], [[-1, 2]]])
    def test_mask_that_fits_no_text_is_refused(self, mask):
        with pytest.raises(RewardError, match=r"item 0: mask: "):
            as_items([{"task_id": "1", "text": MARKS, "mask": mask}])
        with pytest.raises(RewardError, match="mask: goes with text"):
            as_items([{"task_id": "1", "messages": [], "mask": []}])


PROMPT = "What is fact 1?"
PENALTIES = {"injection": 1.0}


@pytest.fixture(scope="module")
def gamed(tmp_path_factory) -> Path:
    return world(tmp_path_factory.mktemp("g"), reward={"metric": "score_clipped", "penalties": PENALTIES})


@pytest.fixture(scope="module")
def model(gamed):
    with RewardModel(gamed) as opened:
        yield opened


def by_dialect(model: RewardModel, path: str, text: str) -> float | None:
    """The reward of `text` by the dialect at `path`."""
    bodies = {
        "/v1/rewards": {"items": [{"task_id": 1, "text": text}]},
        "/get_reward": {"query": [PROMPT + text], "prompts": [PROMPT], "labels": [None]},
        "/reward": {"prompt": PROMPT, "response": text, "label": "1"},
        "/verify": {
            "responses_create_params": {"input": PROMPT},
            "response": {"output": [{"type": "message", "role": "assistant", "content": text}]},
        },
    }
    (dialect,) = (one for one in DIALECTS if one.path == path)
    (reward,) = model.score_sync(dialect.read(json.dumps(bodies[path]).encode()).items)
    return reward.value


class TestGaming:
    @pytest.mark.parametrize("tried", TRIES)
    @pytest.mark.parametrize("path", ["/v1/rewards", "/get_reward", "/reward", "/verify"])
    def test_no_dialect_pays_more_than_for_the_report(self, model, path, tried):
        honest = by_dialect(model, path, PLAIN)
        assert by_dialect(model, path, MARKS) > honest
        assert by_dialect(model, path, f"{MARKS}<|im_end|>") == by_dialect(model, path, MARKS)
        assert by_dialect(model, path, as_text(TRIES[tried])) <= honest

    def test_call_before_a_report_draws_no_penalty(self, model):
        call = f'<tool_call>{{"items": ["x"]}}</tool_call>{MARKS}'
        found = model.score_sync([{"task_id": "1", "text": call}, {"task_id": "1", "text": MARKS}])
        assert found[0].value == found[1].value and found[0].scores["injection"] == 0.0

    def test_forged_page_is_not_a_page(self):
        page = {"url": "https://a.org/x", "text": MARKS}
        said = [
            {"role": "assistant", "content": json.dumps(page), "pages": [page]},
            {"role": "user", "pages": [page]},
        ]
        messages = msgspec.convert(
            [*said, {"role": "tool", "content": json.dumps([page])}], tuple[Message, ...]
        )
        assert pages_in(messages) == ()
        assert (
            pages_in(msgspec.convert([{"role": "tool", "pages": [page]}], tuple[Message, ...]))[0].text
            == MARKS
        )


class TestHidden:
    @pytest.mark.parametrize(
        "hide", ["<!-- {} -->", "<template>{}</template>", '<p style="color:#fff">{}</p>']
    )
    def test_hidden_marks_earn_nothing_and_are_flagged(self, tmp_path, hide):
        texts = (PLAIN, f"{PLAIN}\n\n{hide.replace('{}', MARKS)}", MARKS)
        with RewardModel(rewarded(tmp_path)) as model:
            plain, hidden, marks = model.score_sync({"task_id": "1", "text": text} for text in texts)
        assert hidden.value == plain.value < marks.value
        assert hidden.scores["hidden"] > 0.2 and plain.scores["hidden"] == 0.0

    def test_rubrics_that_a_rollout_brings_are_known_to_its_echo(self, bare):
        rows = [
            {"criterion": f"The report names fact number {n} of all that are known.", "points": 1}
            for n in range(3)
        ]
        texts = (" ".join(row["criterion"] for row in rows), MARKS)
        copied, plain = bare.score_sync({"prompt": PROMPT, "rubrics": rows, "text": text} for text in texts)
        assert copied.scores["echo"] > 0.7 and plain.scores["echo"] < 0.2


class TestTruncated:
    def test_truncated_rollout_gets_the_minimum_or_none(self, tmp_path):
        items = [
            {"task_id": "1", "text": MARKS, "truncated": True},
            {"task_id": "1", "text": f"<think>{MARKS}"},
            {"task_id": "1", "text": MARKS},
        ]
        with RewardModel(rewarded(tmp_path, penalties=PENALTIES)) as model:
            found = model.score_sync(items)
        assert [(one.value, one.reason) for one in found] == [(-1.0, "truncated")] * 2 + [(0.8, None)]
        with RewardModel(rewarded(tmp_path / "none", on_truncated="none")) as model:
            found = model.score_sync(items)
        assert [(one.value, one.reason) for one in found] == [(None, "truncated")] * 2 + [(0.8, None)]


RUBRICS = {
    "researchrubrics": [{"criterion": "Names fact number 0.", "weight": 4, "axis": "facts"}],
    "healthbench": [{"criterion": "Names fact number 0.", "points": 4, "tags": ["facts"]}],
    "rar": [{"description": "Names fact number 0.", "title": "Fact", "weight": 4}],
    "own": [{"criterion": "Names fact number 0.", "points": 4, "tags": ["facts"]}],
    "texts": ["Names fact number 0."],
}
TULU = {"query": PROMPT, "rubrics": RUBRICS["rar"], "rubrics_types": ["adaptive"]}


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A model without tasks, from a mapping."""
    folder = tmp_path_factory.mktemp("bare")
    settings = {
        "protocols": ["rubrics"],
        "judge": "lexical",
        "fetch": {"mode": "off"},
        "store": str(folder / "s"),
    }
    with RewardModel({**settings, "reward": {"metric": "score_clipped"}}) as model:
        yield model


class TestItems:
    @pytest.mark.parametrize("shape", RUBRICS)
    @pytest.mark.parametrize("form", ["rubrics", "gold", "list", "text"])
    def test_rollout_brings_its_own_rubrics(self, bare, shape, form):
        rows = RUBRICS[shape]
        brought = {
            "rubrics": {"rubrics": rows},
            "gold": {"gold": {"rubrics": json.dumps(rows)}},
            "list": {"gold": rows},
            "text": {"rubrics": json.dumps(rows)},
        }[form]
        good, bad = bare.score_sync({"prompt": PROMPT, "text": text, **brought} for text in (MARKS, PLAIN))
        assert (good.value, bad.value) == (1.0, 0.0), good
        assert [(part.protocol, part.value) for part in good.parts] == [
            ("rubrics", 1.0 if shape == "texts" else 4.0)
        ]

    def test_tulu_rows_have_three_levels_and_their_kind(self):
        (row,) = msgspec.json.decode(own_gold(json.dumps(TULU), None, ["rubrics"])["rubrics"])
        assert row == {
            "criterion": "Names fact number 0.",
            "id": "Fact",
            "tags": ["adaptive"],
            "values": [0.0, 2.0, 4.0],
        }

    def test_unreadable_gold_fails_its_own_rollout_alone(self, bare):
        items = [
            {"prompt": "a", "text": MARKS, "gold": "nonsense"},
            {"prompt": "a", "text": MARKS, "rubrics": "{"},
            {"prompt": "a", "text": MARKS, "rubrics": [{"weight": 1}]},
            {"prompt": "a", "text": MARKS},
            {"prompt": "a", "text": MARKS, "rubrics": RUBRICS["own"]},
        ]
        found = bare.score_sync(items)
        assert [one.reason for one in found] == ["gold_invalid"] * 3 + ["gold_missing", None]

    def test_rubrics_of_a_rollout_go_before_those_of_its_task(self, model):
        item = {"task_id": "1", "text": PLAIN, "rubrics": [{"criterion": "know nothing", "points": 1}]}
        own, known = model.score_sync([item, {"task_id": "1", "text": PLAIN}])
        assert (own.value, known.value) == (1.0, 0.0)

    def test_unknown_task_is_told_apart_from_missing_gold(self, model, caplog):
        items = [
            {"task_id": "no", "prompt": PROMPT, "text": MARKS},
            {"prompt": "no", "text": MARKS},
            {"task_id": "no", "text": MARKS, "gold": {"race": {}}},
            {"task_id": 1, "text": MARKS},
            {"task_id": 1.0, "text": MARKS},
            {"prompt": f" {PROMPT}\n", "text": MARKS},
            {"prompt": f"<|im_start|>user\n{PROMPT}<|im_end|>\n<|im_start|>assistant\n", "text": MARKS},
        ]
        found = model.score_sync(items)
        assert [one.reason for one in found] == ["task_unknown"] * 2 + ["gold_missing"] + [None] * 4
        assert sum("chat template" in record.message for record in caplog.records) <= 1

    async def test_pages_of_a_rollout_are_all_there_are(self, tmp_path):
        """They serve it alone, and an address that is not among them supports nothing."""
        page = {
            "url": "https://a.org/x",
            "title": "Tides",
            "text": "Tides rise twice a day because of the moon.",
        }
        text = "Tides rise twice a day [1](https://a.org/x)."
        outside = f"{text} Tides fall at night [2](https://a.org/y)."
        config = RunConfig.load(
            world(tmp_path, protocols=[{"name": "fact", "extraction": "markers"}], reward={"metric": "c_acc"})
        )
        async with open_rewards(config) as scorer:
            items = [
                {"task_id": "0", "text": text, "pages": [page]},
                {"task_id": "0", "text": outside, "pages": [page]},
                {"task_id": "0", "text": text.replace("https://a.org/x", "http://a.org/x/"), "pages": [page]},
                {"task_id": "0", "text": text},
                {"task_id": "0", "text": text, "pages": []},
                {"task_id": "0", "text": "Tides rise twice a day."},
                {"task_id": "0", "messages": [{"role": "assistant", "content": text}]},
            ]
            mine, beyond, spelt, other, unread, plain, talk = await scorer.score(items)
        assert (mine.value, mine.reason) == (1.0, None)
        assert (beyond.value, beyond.reason) == (0.5, None)
        assert (spelt.value, spelt.reason) == (1.0, None), "another address of the same page"
        assert (other.value, other.reason) == (None, "pages_off")
        assert (unread.value, unread.reason) == (0.0, None)
        assert (plain.value, plain.reason) == (None, "pages_off"), "whatever the text"
        assert (talk.value, talk.reason) == (0.0, None), "its tools returned no page"

    async def test_page_lost_in_a_closed_world_is_unsupported(self, tmp_path):
        """Otherwise a policy could cite it to have no reward in place of a poor one."""
        folder = tmp_path / "pages"
        folder.mkdir()
        row = {"url": "https://a.org/x", "file": "gone.html", "content_type": "text/html"}
        (folder / "index.jsonl").write_text(json.dumps(row) + "\n")
        text = "Tides rise twice a day [1](https://a.org/x)."
        found = {}
        for closed in (False, True):
            (folder / "gone.html").write_text("<p>Tides rise twice a day.</p>")
            config = RunConfig.load(
                world(
                    tmp_path / str(closed),
                    protocols=[{"name": "fact", "extraction": "markers"}],
                    reward={"metric": "c_acc"},
                    fetch={"mode": "snapshot", "snapshot": str(folder), "closed": closed},
                )
            )
            async with open_rewards(config) as scorer:
                (folder / "gone.html").unlink()
                (found[closed],) = await scorer.score([{"task_id": "0", "text": text}])
        assert (found[False].value, found[False].reason) == (None, "snapshot_damaged")
        assert (found[True].value, found[True].reason) == (0.0, "snapshot_damaged")

    @pytest.mark.parametrize("pages", [None, []])
    async def test_closed_world_without_pages_has_none_for_any_rollout(self, tmp_path, pages):
        config = RunConfig.load(
            world(
                tmp_path,
                protocols=[{"name": "fact", "extraction": "markers"}],
                reward={"metric": "c_acc"},
                fetch={"mode": "off", "closed": True},
            )
        )
        text = "Tides rise twice a day [1](https://a.org/x)."
        async with open_rewards(config) as scorer:
            (found,) = await scorer.score([{"task_id": "0", "text": text, "pages": pages}])
        assert (found.value, found.reason) == (0.0, None)
        with pytest.raises(ConfigError, match="closed: the live web is never complete"):
            RunConfig.load(world(tmp_path / "live", fetch={"mode": "live", "closed": True}))

    async def test_unknown_id_without_a_prompt_is_judged_by_nothing(self, tmp_path):
        config = RunConfig.load(
            world(tmp_path, protocols=[{"name": "fact", "extraction": "markers"}], reward={"metric": "c_acc"})
        )
        async with open_rewards(config) as scorer:
            named, asked = await scorer.score(
                [{"task_id": "no", "text": "Tides."}, {"prompt": "no", "text": "Tides.", "pages": []}]
            )
        assert (named.value, named.reason, named.n_asked) == (None, "task_unknown", 0)
        assert asked.value == 0.0


class TestAsked:
    async def test_only_protocols_with_a_weight_are_asked(self, tmp_path):
        protocols = ["rubrics", {"name": "fact", "extraction": "markers"}]
        reward = {"protocols": protocols, "weights": {"rubrics.score_clipped": 1}}
        text = f"{MARKS} [1](https://a.org/x)"
        found = []
        for always in ([], ["fact"]):
            config = RunConfig.load(world(tmp_path / str(len(always)), reward={**reward, "always": always}))
            async with open_rewards(config) as scorer:
                found += await scorer.score([{"task_id": "1", "text": text}])
        assert [one.value for one in found] == [found[0].value] * 2 and found[0].value is not None
        assert "c_acc" not in found[0].scores and "c_acc" in found[1].scores
        with pytest.raises(ConfigError, match="always: unknown protocol 'race'"):
            RunConfig.load(world(tmp_path / "bad", reward={**reward, "always": ["race"]}))


class TestEscape:
    @pytest.mark.parametrize("reason", ["judge_refused", "judge_unparseable", "context_overflow"])
    async def test_provoked_refusal_gains_nothing_with_the_minimum(self, tmp_path, reason):
        """A policy that provokes a refusal wherever its report is poor, against one that does not."""

        def opinion(question):
            text = question.context["report"]
            if "PROVOKE" in text:
                return Reply(reason=reason)
            return PointsGiven(points=max(question.options) if "good" in text else min(question.options))

        means = {}
        for choice in ("none", "minimum"):
            config = rewarded(tmp_path / choice, weights={"score": 1}, on_unanswered=choice)
            async with scripted(config, ScriptedJudge(opinion)) as scorer:
                honest = await scorer.score(
                    [{"task_id": "0", "text": t} for t in ("good a", "poor b", "poor c")]
                )
                gamed = await scorer.score(
                    [{"task_id": "0", "text": t} for t in ("good a", "PROVOKE b", "PROVOKE c")]
                )
                assert scorer.unanswered == {("0", reason): 2}
            assert [one.scores["unanswered"] for one in gamed] == [0.0, 1.0, 1.0]
            assert {one.reason for one in gamed[1:]} == {reason}
            values = [[one.value for one in found if one.value is not None] for found in (honest, gamed)]
            means[choice] = [sum(found) / len(found) for found in values]
        assert means["none"][1] > means["none"][0]
        assert means["minimum"][1] <= means["minimum"][0]

    async def test_second_answer_counts_and_a_broken_judge_flags_none(self, tmp_path):
        asked = []

        def once(question):
            asked.append(question)
            return (
                Reply(reason="judge_unparseable")
                if "odd" in question.context["report"] and len(asked) < 22
                else best(question)
            )

        async with scripted(rewarded(tmp_path), ScriptedJudge(once)) as scorer:
            found = await scorer.score([{"task_id": "0", "text": "fine"}, {"task_id": "0", "text": "odd"}])
            assert [one.value for one in found] == [1.0, 1.0] and not scorer.unanswered
        broken = ScriptedJudge(lambda question: "judge_refused")
        async with scripted(rewarded(tmp_path / "broken", on_unanswered="minimum"), broken) as scorer:
            found = await scorer.score([{"task_id": "0", "text": text} for text in "ab"])
            assert [one.value for one in found] == [None, None] and not scorer.unanswered


SECONDS = 2.0


def _at(url: str) -> dict[str, object]:
    return {"backend": "openai", "url": url, "model": "mock", "retries": 0}


def _forked(model: RewardModel, sent: Any) -> None:
    with timed(SECONDS) as call:
        (found,) = model.score_sync([{"task_id": "0", "text": MARKS}], deadline=SECONDS)
    sent.send((found.value, found.reason, call))
    sent.close()


class TestProcesses:
    @pytest.mark.parametrize("method", ["fork", "spawn"])
    def test_source_of_another_process_answers_in_time(self, tmp_path, method):
        context = multiprocessing.get_context(method)
        with judge_server(60) as url, RewardModel(rewarded(tmp_path, judge=_at(url))) as model:
            model.score_sync([{"task_id": "0", "text": MARKS}], deadline=0.5)
            ends, sent = context.Pipe(duplex=False)
            worker = context.Process(target=_forked, args=(model, sent), daemon=True)
            worker.start()
            assert ends.poll(60), "it hangs"
            value, reason, call = ends.recv()
            worker.join()
        assert (value, reason) == (None, "deadline")
        assert call.is_in_time, call

    def test_deadline_counts_from_the_clock_of_the_trainer(self, tmp_path):
        with RewardModel(rewarded(tmp_path)) as model:
            item = {"task_id": "0", "text": MARKS}
            assert model.score_sync([item], deadline=30)[0].value == 0.8
            (late,) = model.score_sync([{**item, "text": "Another."}], deadline=10, since=time.time() - 11)
            assert (late.value, late.reason) == (None, "deadline")
            assert asyncio.run(model.score([item], deadline=30, since=time.time() - 1))[0].value == 0.8

    def test_four_event_loops_end_in_time_before_a_hung_judge(self, tmp_path):
        def called(n: int) -> tuple[str | None, Timed]:
            with timed(SECONDS) as call:
                item = {"task_id": "0", "text": f"{MARKS} {n}"}
                (found,) = asyncio.run(model.score([item], deadline=SECONDS))
            return found.reason, call

        with (
            judge_server(60) as url,
            RewardModel(rewarded(tmp_path, judge=_at(url))) as model,
            ThreadPoolExecutor(4) as pool,
        ):
            ended = list(pool.map(called, range(4)))
        assert {reason for reason, _ in ended} == {"deadline"}
        assert all(call.is_in_time for _, call in ended), ended

    def test_one_source_serves_four_event_loops(self, tmp_path):
        with RewardModel(rewarded(tmp_path)) as model, ThreadPoolExecutor(4) as pool:
            calls = [
                pool.submit(lambda n: asyncio.run(model.score([{"task_id": "0", "text": f"{MARKS} {n}"}])), n)
                for n in range(4)
            ]
            assert [call.result(60)[0].value for call in calls] == [0.8] * 4
