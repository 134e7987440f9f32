"""The rollouts that every trainer's test scores."""

PROMPT = "What is fact 1?"
TEXT = "It states fact number 0. The measured value was 42 units."  # worth 0.8
RUBRICS = [{"criterion": "The report names fact number 0.", "points": 1}]  # which TEXT meets
END = "<|im_end|>"
SLOW_S = 300.0  # what a slow judge takes: longer than any test
DEADLINE_S = 0.7
