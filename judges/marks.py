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
"""Names of tags around a thought. A family writes its own name before one: `<seed:think>`."""
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
)
"""What opens and closes a thought."""
ANSWERS = (
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ("<|START_TEXT|>", "<|END_TEXT|>"),
    ("<|begin_of_solution|>", "<|end_of_solution|>"),
    ("<|begin_of_box|>", "<|end_of_box|>"),
)
"""What opens and closes the answer proper."""
