"""Thoughts and calls of tools that a model's server left in a report: no part of it.

A block opens where a line begins. A closing tag alone ends thoughts that the chat template opened. Tags in code are
mentions.
"""

import re

from adjudge.judges.marks import BEFORE, BEHIND, THOUGHT_TAGS
from adjudge.judges.marks import THOUGHTS as TOKENS

__all__ = ["CALLS", "RESULTS", "THOUGHTS", "parted"]

THOUGHTS = THOUGHT_TAGS
"""The tags of what a model thinks."""
CALLS = (
    "tool_call",
    "tool_calls",
    "toolcall",
    "call_tool",
    "function_call",
    "function_calls",
    "function",
    "tool_use",
    "use_mcp_tool",
    "search",
    "execute_ipython",
    "execute_bash",
    "execute_browse",
)
"""The tags of its calls of tools."""
RESULTS = (
    "tool_response",
    "tool_responses",
    "tool_result",
    "tool_results",
    "tool_output",
    "function_response",
    "function_result",
    "function_results",
    "observation",
    "information",
    "result",
    "search_result",
    "search_results",
    "documents",
)
"""The tags of what tools return."""
_CLOSED = {closing.lower(): opening.lower() for opening, closing in TOKENS}
# Each alternative begins with its first character, so that a search stops at no other.
_TAG = re.compile(
    rf"<(?P<slash>/?)(?P<tag>{BEFORE}(?P<name>{'|'.join((*THOUGHTS, *CALLS, *RESULTS))}){BEHIND})>"
    rf"|{'|'.join(re.escape(token) for pair in TOKENS for token in pair)}",
    re.IGNORECASE,
)
_IN_BRACKETS = ("[t", "[T", "[/")  # a tag or token has one of them, if neither "<" nor "◁"
_CODE = re.compile(r"(?ms)^[ ]{0,3}(?P<fence>```|~~~).*?^[ ]{0,3}(?P=fence)[^\n]*$|`[^`\n]{1,400}`")
_BEFORE = 20


def parted(text: str) -> tuple[str, tuple[str, ...]]:
    """`text` without thoughts and calls of tools, and these. Linear."""
    if not _may_have_tag(text) or not _TAG.search(text):
        return text, ()
    code = [found.span() for found in _CODE.finditer(text)]
    said, aside, opened = list[str](), list[str](), ""
    at = begin = place = 0
    for tag in _TAG.finditer(text):
        while place < len(code) and code[place][1] <= tag.start():
            place += 1
        if place < len(code) and code[place][0] <= tag.start():
            continue
        name, closes = _said(tag)
        is_thought = not tag["name"] or tag["name"].lower() in THOUGHTS
        if opened and closes and name == opened:
            aside.append(text[begin : tag.end()])
            opened, at = "", tag.end()
        elif not opened and closes and is_thought and not aside:
            aside.append(text[: tag.end()])
            at = tag.end()
        elif not opened and not closes and _begins_line(text, tag.start()):
            said.append(text[at : tag.start()])
            opened, at, begin = name, tag.start(), tag.start()
    if opened and not "".join(said).strip():  # cut off before the report began
        return "", (*aside, text[begin:])
    if not aside:
        return text, ()
    return "".join((*said, text[at:])).strip(), tuple(aside)


def _may_have_tag(text: str) -> bool:
    if "<" in text or "◁" in text:
        return True
    return "[" in text and any(sign in text for sign in _IN_BRACKETS)


def _said(tag: re.Match[str]) -> tuple[str, bool]:
    """What a tag or token opens or closes, and whether it closes."""
    if tag["tag"]:
        return tag["tag"].lower(), bool(tag["slash"])
    token = tag.group().lower()
    return _CLOSED.get(token, token), token in _CLOSED


def _begins_line(text: str, at: int) -> bool:
    line = text[max(0, at - _BEFORE) : at].rpartition("\n")
    return not line[2].strip() and (bool(line[1]) or at < _BEFORE)
