"""What counts as the report of a rollout: one rule for every trainer and every way to call.

The report is the text of the last assistant turn, without thinking, tool calls, tool results and chat-template tokens.
A bare closing tag ends thinking that the template opened. Anything left open ends the report, and the rollout is
truncated: a policy earns nothing for what it thinks, plans, or puts into a tool's mouth. A tag alone between backticks
is a mention, not a tag.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from adjudge.engine.config.reward import ReportRules
from adjudge.engine.rewards.reward import ASSISTANT, TOOLS, Conversation, Message, asked_in

__all__ = ["Written", "last_turn", "prompt_in", "report_in", "unclosed"]

LONGEST = (
    8_000_000  # characters of a rollout that are looked at; what is longer is too large for a report anyway
)

# The headers of turns in the chat templates of Qwen, Llama, Gemma, GLM and Phi, DeepSeek, gpt-oss and Mistral.
_HEADERS = (
    r"<\|im_start\|>(?P<chatml>[a-z]{1,20})?"
    r"|<\|start_header_id\|>(?P<llama>[a-z]{1,20})<\|end_header_id\|>"
    r"|<start_of_turn>(?P<gemma>[a-z]{1,20})"
    r"|<\|(?P<named>user|assistant|system|observation|tool)\|>"
    r"|<｜(?P<deepseek>User|Assistant)｜>"
    r"|<\|start\|>(?P<harmony>[a-z]{1,20})"
    r"|<\|channel\|>(?P<channel>[a-z]{1,20})[^<]{0,80}(?:<\|constrain\|>[^<]{0,40})?<\|message\|>"
    r"|\[(?P<mistral>/?INST)\]"
)
_ROLES = {
    "user": "user",
    "assistant": "assistant",
    "inst": "user",
    "/inst": "assistant",
    "final": "assistant",
}
# The tokens that close a turn, spelled backwards: a search from the front is quadratic in the white space.
_CLOSING = re.compile(
    r"\s*+(?:(?:>\|[a-z_]{1,40}\|<|>[｜|][a-z▁_]{1,40}[｜|]<|>s/<|>soe<|>dap<|\]DAP\[|>nrut_fo_dne<)\s*+)++"
)
_OPENING = re.compile(r"\s{0,20}(?:<s>|<bos>|<\|begin_of_text\|>|<｜begin▁of▁sentence｜>)\s{0,20}")
_BARE_ROLE = re.compile(r"\s{0,20}(?:assistant|model)[ \t]{0,20}\r?\n")  # where special tokens were skipped
_BARE_USER = re.compile(r"(?:^|\n)user\r?\n")
_BARE_END = re.compile(r"\n(?:assistant|model)[ \t]{0,20}\r?\n?$")


class Written(msgspec.Struct, frozen=True):
    """A report, and whether the rollout finished."""

    text: str
    is_whole: bool


def report_in(said: Conversation, rules: ReportRules) -> Written:
    """The report in a rollout: a text, or the messages of a conversation."""
    if isinstance(said, str):
        found = last_turn(said, rules)
        if rules.end is not None and not said.rstrip().endswith(rules.end.rstrip()):
            found = msgspec.structs.replace(found, is_whole=False)
    else:
        found = _last_message(said, rules)
    return found if rules.between is None else _between(found, *rules.between)


def _last_message(messages: Sequence[Message], rules: ReportRules) -> Written:
    last = next((n for n in range(len(messages) - 1, -1, -1) if messages[n].is_reply), None)
    if last is None:
        return Written("", not any(message.is_tool for message in messages))
    found = last_turn(messages[last].text, rules)
    calls = bool(messages[last].tool_calls) and not found.text.strip()
    goes_on = calls or any(message.is_tool for message in messages[last + 1 :])
    return Written(found.text, found.is_whole and not goes_on)


def _between(found: Written, opening: str, closing: str) -> Written:
    start = found.text.rfind(opening)
    if start < 0:
        return Written("", found.is_whole)
    inside, closed, _ = found.text[start + len(opening) :].partition(closing)
    return Written(inside.strip(), found.is_whole and bool(closed))


def last_turn(text: str, rules: ReportRules) -> Written:
    """The last assistant turn in `text`, which may hold a whole conversation in the form of a chat template.

    A text without any of that is given back as it is.
    """
    if len(text) > LONGEST:
        return Written(text, True)
    reading = _Reading(text, rules)
    for mark in _marks(rules).finditer(text):
        reading.take(mark)
    return reading.done()


def prompt_in(asked: Conversation) -> str:
    """The user's question in a prompt: its last turn if it has the form of a chat template, without outer blanks."""
    text = asked_in(asked)[:LONGEST]
    turns = [
        (_role(mark), mark.end(), mark.start())
        for mark in _marks(ReportRules(thinking=(), calls=(), results=())).finditer(text)
    ]
    users = [place for place, turn in enumerate(turns) if turn[0] == "user"]
    if users:
        end = turns[users[-1] + 1][2] if users[-1] + 1 < len(turns) else len(text)
        return unclosed(text[turns[users[-1]][1] : end]).strip()
    bare = _BARE_USER.split(text)
    ended = _BARE_END.search(bare[-1][-60:])
    if len(bare) > 1 and ended is not None:
        return bare[-1][: len(bare[-1]) - len(ended.group())].strip()
    return unclosed(text).strip()


def unclosed(text: str) -> str:
    """`text` without the tokens that close a turn."""
    closing = _CLOSING.match(text[::-1])
    return text if closing is None else text[: len(text) - closing.end()]


@lru_cache(maxsize=16)
def _marks(rules: ReportRules) -> re.Pattern[str]:
    names = "|".join(map(re.escape, (*rules.thinking, *rules.calls, *rules.results)))
    tags = rf"<(?P<slash>/?)(?P<tag>(?i:{names}))(?:\s[^<>]{{0,200}})?>|" if names else ""
    thinking = r"\[(?P<bracket>/?THINK)\]|◁(?P<kimi>/?think)▷|" if rules.thinking else ""
    return re.compile(tags + thinking + _HEADERS)


def _role(mark: re.Match[str]) -> str:
    """The role that a header names; none is the assistant's, since the header of its turn is often cut in two."""
    named = mark[mark.lastgroup] if mark.lastgroup else None
    name = (named or "assistant").lower()
    if mark.lastgroup == "channel" and name != "final":
        return "thinking"
    return "assistant" if name in ASSISTANT else _ROLES.get(name, name)


class _Reading:
    """A text on its way from mark to mark: whose turn it is, what is open, and what the turn has said so far."""

    def __init__(self, text: str, rules: ReportRules) -> None:
        self._text = text
        self._calls = frozenset(name.lower() for name in rules.calls)
        self._results = frozenset(name.lower() for name in rules.results)
        self._role = "assistant"
        self._said: list[str] = []
        self._before = ""  # what the assistant said in its last whole turn
        self._at = 0
        self._thinking = False
        self._tool = ""
        self._after_result = False
        self._is_marked = False

    def take(self, mark: re.Match[str]) -> None:
        """Read up to `mark`, and what it changes."""
        around = self._text[max(mark.start() - 1, 0) : mark.start()] + self._text[mark.end() : mark.end() + 1]
        if around == "``":
            return
        group = mark.lastgroup or "chatml"
        if group == "tag":
            self._tag(mark, mark["tag"].lower(), bool(mark["slash"]))
        elif group in ("bracket", "kimi"):
            self._thought(mark, mark[group].startswith("/"))
        elif self._tool not in self._results:  # the page that a tool returns may say anything
            self._turn(mark)

    def done(self) -> Written:
        """The last assistant turn."""
        if not self._is_marked:
            text = unclosed(self._text)
            return Written(_OPENING.sub("", text, count=1) if _OPENING.match(text) else text, True)
        if self._role == "assistant":
            is_whole = not self._thinking and not self._tool
            self._keep(len(self._text))
            found = "".join(self._said)
        else:
            is_whole = self._role in ("user", "system", "developer")
            found = self._before
        if self._after_result:
            found = _BARE_ROLE.sub("", found, count=1) if _BARE_ROLE.match(found) else found
            is_whole = is_whole and bool(unclosed(found).strip())
        return Written(unclosed(found).strip(), is_whole)

    def _tag(self, mark: re.Match[str], name: str, closes: bool) -> None:
        if name not in self._calls and name not in self._results:
            if not self._tool:
                self._thought(mark, closes)
        elif self._thinking and name in self._calls:
            return  # a thought about a tool
        elif closes and (name == self._tool or not self._tool):
            if name in self._results:
                self._end_result()
            elif not self._tool:
                self._said.clear()
            self._tool = ""
            self._at = mark.end()
            self._is_marked = True
        elif not closes and not self._tool:
            self._keep(mark.start())
            self._tool = name

    def _thought(self, mark: re.Match[str], closes: bool) -> None:
        if self._tool:
            return
        if not closes:
            self._keep(mark.start())
        elif not self._thinking:
            self._said.clear()  # opened by the template
        self._thinking = not closes
        self._at = mark.end()
        self._is_marked = True

    def _end_result(self) -> None:
        """A tool has spoken: what comes next is another turn."""
        self._said.clear()
        self._after_result = True
        if self._role != "assistant":
            self._role = "tool"

    def _turn(self, mark: re.Match[str]) -> None:
        self._keep(mark.start())
        if self._role == "assistant":
            if mark.start() > 0 or self._said:
                self._before = "".join(self._said)
            self._after_result = False
        self._role = _role(mark)
        if self._role in TOOLS:
            self._role = "tool"
        self._said = []
        self._tool = ""
        self._thinking = False
        self._at = mark.end()
        self._is_marked = True

    def _keep(self, end: int) -> None:
        """Take what the assistant says up to `end`."""
        if self._role == "assistant" and not self._thinking and not self._tool:
            self._said.append(self._text[self._at : end])
        self._is_marked = True
