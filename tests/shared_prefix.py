"""The prompt tokens that a prefix cache of unlimited size would leave to compute."""

from collections.abc import Iterable, Sequence


def least_computed(prompts: Iterable[Sequence[int]], block: int) -> int:
    """Prompt tokens to compute if every whole block (of `block` tokens) is computed once, and last tokens always."""
    seen: set[int] = set()
    computed = 0
    for prompt in prompts:
        cached, prefix = 0, 0
        for start in range(0, len(prompt) - block + 1, block):
            prefix = hash((prefix, *prompt[start : start + block]))
            if prefix in seen and start == cached and start + block < len(prompt):
                cached += block
            seen.add(prefix)
        computed += len(prompt) - cached
    return computed
