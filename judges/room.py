"""What the numbers of servers say about room: a refusal about tokens, and a count of a prompt's tokens.

Servers word their refusals in many ways, so the numbers decide: the `max_tokens` that was sent stands beside the window
and the prompt, or the most that an answer may have stands alone. Everything is linear in text that is limited before.
"""

import re

_RANGE = re.compile(r"\[\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\]")
_NUMBER = re.compile(r"(?<![\w.<-])(?:\d{1,3}(?:,\d{3}){1,3}|\d{1,9})(?![\w>])")
_ANSWER = re.compile(
    r"(?<![a-z_])max_?(?:completion_?|new_?|output_?)?tokens|(?:completion|output|new|maximum) tokens",
    re.IGNORECASE,
)
_MOST_NUMBERS = 8  # a message of more is not about two or three of them
_CHARS_PER_TOKEN = 4.0
_LEAST_ROOM = 16
_MOST_TIMES = 3  # a prompt's tokens over those that its bytes make likely
_WORD = re.compile(r"[^\W_]+")
_PLAIN_BYTES = 8  # of a prompt for each token: below it, words need not be counted
_LONGEST_TOKEN = 16  # characters of one word that has no spaces in it, as in Chinese


def room(said: str, asked: int, size: int, status: int) -> tuple[int | None, int | None]:
    """The tokens that a refusal leaves for an answer: to this prompt of `size` bytes, and to any prompt.

    `asked` is the `max_tokens` that was refused with `status`; each is less than that, and None if `said` has no
    numbers that tell.
    """
    about_answers = _ANSWER.search(said) is not None
    if about_answers and (span := _RANGE.search(said)) and _LEAST_ROOM <= int(span[2]) < asked:
        return None, int(span[2])
    numbers = {int(found[0].replace(",", "")) for found in _NUMBER.finditer(_RANGE.sub(r"\1 \2", said))}
    names_asked = asked in numbers
    numbers -= {asked, status}
    if len(numbers) > _MOST_NUMBERS:
        return None, None
    if names_asked and (left := _left(numbers, asked, size)) is not None:
        return (left, None) if left >= _LEAST_ROOM else (None, None)
    if about_answers and not names_asked and (left := _left_of_sum(numbers, asked, size)) is not None:
        return left, None
    limits = [number for number in numbers if _LEAST_ROOM <= number < asked]
    if len(limits) == 1 and about_answers:
        return None, limits[0] - 1  # some name the first number that is too much
    return None, None


def _left_of_sum(numbers: set[int], asked: int, size: int) -> int | None:
    """Window less prompt, where the window stands beside the sum of prompt and `asked` alone."""
    expected = size / _CHARS_PER_TOKEN
    found = [
        (abs(both - asked - expected), window - both + asked)
        for both in numbers
        for window in numbers
        if expected / _MOST_TIMES <= both - asked <= expected * _MOST_TIMES
        and both - asked + _LEAST_ROOM <= window < both
    ]
    return min(found)[1] if found else None


def _left(numbers: set[int], asked: int, size: int) -> int | None:
    """Window less prompt, which both stand there; with the sum of prompt and `asked`, or without."""
    prompts = {number - asked for number in numbers} & numbers
    numbers = numbers - {prompt + asked for prompt in prompts}
    expected = size / _CHARS_PER_TOKEN
    found = [
        (abs(prompt - expected), window - prompt)
        for prompt in prompts or numbers
        for window in numbers
        if prompt < window < prompt + asked
    ]
    return min(found)[1] if found else None


def is_cut_short(prompt: str, size: int, counted: int) -> bool:
    """Whether a server that `counted` so many tokens cannot have read all of `prompt`, of `size` bytes in a request.

    Tokens do not reach across words: half of them is less than any tokenizer needs.
    """
    if not counted or size <= _PLAIN_BYTES * counted:
        return False
    least = sum(1 + len(word[0]) // _LONGEST_TOKEN for word in _WORD.finditer(prompt))
    return counted < least / 2
