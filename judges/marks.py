"""How families of models mark their thoughts and their answers, in words and in tokens of their templates."""

ASSISTANT = frozenset({"assistant", "model", "ai", "bot", "chatbot", "gpt", "chatgpt"})
"""What the model is called among those who speak."""
THOUGHT_TAGS = (
    "think",
    "thinking",
    "thought",
    "thoughts",
    "reason",
    "reasoning",
    "reflection",
    "analysis",
    "scratchpad",
    "scratch_pad",
    "plan",
)
"""Names of tags around a thought."""

BEFORE, BEHIND = r"(?:[a-z0-9]{1,20}[:_])?", r"(?::[a-z0-9]{1,20})?"
"""Patterns of a family's own name around that of a tag: `<seed:think>`, `<longcat_think>`, `<think:opensource>`."""
THOUGHTS = (
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel>thought", "<channel|>"),
    ("<|think|>", "<|content|>"),
    ("<|thought_start|>", "<|thought_end|>"),
    ("<|begin_of_reasoning|>", "<|end_of_reasoning|>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
)
"""What opens and closes a thought."""
ANSWERS = (
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ("<|START_TEXT|>", "<|END_TEXT|>"),
    ("<|begin_of_solution|>", "<|end_of_solution|>"),
    ("<|begin_of_box|>", "<|end_of_box|>"),
    ("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
    ("[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]"),
)
"""What opens and closes the answer proper."""
