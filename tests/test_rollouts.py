"""What counts as the report of a rollout, what it brings along, and that no other text of it is paid."""

from typing import Any

import msgspec
import pytest

from adjudge.engine.config.reward import ReportRules
from adjudge.engine.rewards.conversation import Message
from adjudge.engine.rewards.report import Written, prompt_in, report_in

RULES = ReportRules()


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
        ],
    )
    @pytest.mark.parametrize(
        "end", ["", "<|im_end|>\n", "</s>", " <eos> <pad><pad>", "<｜end▁of▁sentence｜>", "<|return|>"]
    )
    def test_what_comes_before_the_last_turn_is_left_out(self, before, end):
        assert written(f"{before}The report.{end}") == ("The report.", True)

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
        ],
    )
    def test_rollout_without_an_end_is_truncated(self, text, report):
        assert written(text) == (report, False)

    def test_thinking_inside_of_a_report_is_cut_out(self):
        assert written("One. <think>MARKS</think>Two.") == ("One. Two.", True)
        assert written("One.\n> <think>\n> MARKS\n> </think>\nTwo.") == ("One.\n> \nTwo.", True)

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
