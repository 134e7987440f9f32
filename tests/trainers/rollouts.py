"""The rollouts that every trainer's test scores."""

PROMPT = "What is fact 1?"
TEXT = "It states fact number 0. The measured value was 42 units."  # worth 0.8
SLOW_S = 20.0  # what a slow judge takes
DEADLINE_S = 1.0
