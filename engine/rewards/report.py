"""What counts as the report of a rollout: one rule for every trainer and every way to call.

The report is the text of the last assistant turn, without thinking, tool calls, tool results and chat-template tokens.
A bare closing tag ends thinking that the template opened. Anything left open ends the report, and the rollout is
truncated: a policy earns nothing for what it thinks, plans, or puts into a tool's mouth. A call that ends the
rollout leaves the report to come, unless it says that the report is done. A mark alone between backticks or inside of a
closed code fence is a mention; so is one in quotation marks, in an indented line or behind a backslash.

Messages, and the mask of a trainer, say whose text is whose. A text alone is read by the marks of its template
(`templates.py`); where these are gone and traces of turns are left, the report is not clear.
"""

import re
from collections.abc import Sequence

import msgspec

from adjudge.engine.config.reward import ReportRules
from adjudge.engine.formats.messages import Conversation, Message, asked_in, last_reply
from adjudge.engine.rewards.reward import Spans
from adjudge.engine.rewards.templates import (
    CLOSING,
    OPEN_ENDED,
    OPENING,
    Block,
    blocks,
    finishes,
    has_traces,
    is_call,
    marks,
    role_of,
)

__all__ = ["Written", "last_turn", "prompt_in", "report_in", "unclosed"]

LONGEST = (
    8_000_000  # characters of a rollout that are looked at; what is longer is too large for a report anyway
)
_NO_TAGS = ReportRules(thinking=(), calls=(), results=())

_BARE_ROLE = re.compile(
    r"\s{0,20}(?:assistant|model|ai)(?:[ \t]{0,20}\r?\n|(?=[A-Z#]))"
)  # where special tokens were skipped
_BARE_USER = re.compile(r"(?:^|\n)user\r?\n")
_BARE_END = re.compile(r"\n(?:assistant|model)[ \t]{0,20}\r?\n?$")
_FENCE_ENDS = {char: re.compile(rf"(?m)^[ \t]{{0,3}}{char}{{3,}}[ \t]{{0,20}}\r?$") for char in "`~"}
_BRACKETS = re.compile(r"[\[\]]")
_QUOTES = frozenset(["``", '""', "“”"])
_SHOWN = re.compile(r"(?:\n {4,12}|\n\t{1,3}|\\)\Z")  # in an indented line, or behind a backslash
_EMPTY = 100  # characters of a turn that may hold nothing but tokens
_NOT_HEADERS = frozenset({"tag", "token", "fence"})


class Written(msgspec.Struct, frozen=True):
    """A report, whether the rollout finished, and whether it was clear what of the rollout the report is."""

    text: str
    is_whole: bool
    is_clear: bool = True


def report_in(said: Conversation, rules: ReportRules, mask: Spans | None = None) -> Written:
    """The report in a rollout: a text, of which the policy wrote the spans of `mask`, or a conversation's messages."""
    if isinstance(said, str):
        found = last_turn(said, rules) if mask is None else _last_span(said, mask, rules)
        if rules.end is not None and not said.rstrip().endswith(rules.end.rstrip()):
            found = msgspec.structs.replace(found, is_whole=False)
    else:
        found = _last_message(said, rules)
    return found if rules.between is None else _between(found, *rules.between)


def _last_message(messages: Sequence[Message], rules: ReportRules) -> Written:
    last = last_reply(messages)
    later = any(one.is_tool or one.is_thought for one in messages[0 if last is None else last + 1 :])
    if last is None:
        return Written("", not later)
    found = last_turn(messages[last].text, rules)
    goes_on = messages[last].goes_on or (later and not messages[last].finishes)
    return Written(found.text, found.is_whole and not goes_on)


def _last_span(text: str, mask: Spans, rules: ReportRules) -> Written:
    """The report in the last text that the policy wrote in one piece; what an environment said after it cuts it off."""
    wrote = [(start, end) for start, end in mask if start < end]
    if not wrote:
        return Written("", True)
    begin, until = wrote[-1]
    for start, end in reversed(wrote[:-1]):
        if end < begin:
            break
        begin = start
    found = last_turn(text[begin:until], rules)
    rest = unclosed(text[until:])
    other = next(marks(rest, _NO_TAGS), None)
    is_last = not rest.strip() or (other is not None and role_of(other) == "user")
    return Written(found.text, found.is_whole and is_last, found.is_clear)


def _between(found: Written, opening: str, closing: str) -> Written:
    """Markers that a user names make a report clear."""
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
    for mark in marks(text, rules):
        reading.take(mark)
    return reading.done()


def prompt_in(asked: Conversation) -> str:
    """The user's question in a prompt: its last turn if it has the form of a chat template, without outer blanks."""
    text = asked_in(asked)[:LONGEST]
    turns = [
        (role_of(mark), mark.end(), mark.start())
        for mark in marks(text, _NO_TAGS)
        if mark.lastgroup not in (*_NOT_HEADERS, "round")
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
    backwards, end = text[::-1], 0
    while closing := CLOSING.match(backwards, end):
        end = closing.end()
    return text[: len(text) - end]


def _end_of_brackets(text: str, at: int) -> int:
    """Behind which character the bracket at `at` is closed; the end of the text if nowhere."""
    depth = 0
    for bracket in _BRACKETS.finditer(text, at):
        depth += 1 if bracket.group() == "[" else -1
        if not depth:
            return bracket.end()
    return len(text)


class _Reading:
    """A text on its way from mark to mark: whose turn it is, what is open, and what the turn has said so far."""

    def __init__(self, text: str, rules: ReportRules) -> None:
        self._text = text
        self._kinds: dict[str, Block] = {
            **dict.fromkeys((name.lower() for name in rules.thinking), "thought"),
            **dict.fromkeys((name.lower() for name in rules.calls), "call"),
            **dict.fromkeys((name.lower() for name in rules.results), "result"),
        }
        self._role = "assistant"
        self._said: list[str] = []
        self._before = Written("", True)  # what the assistant said in its last whole turn
        self._at = 0
        self._thinking = False
        self._tool: tuple[Block, str] | None = None
        self._begun = 0  # where it begins
        self._called = False  # whether the turn has said nothing since a call
        self._after_result = False
        self._is_marked = False
        self._rounds = False
        self._spoken = False  # whether the turn has said anything
        self._seam = False  # whether another's unmarked turn may have come since
        self._is_clear = True
        self._quote = (0, 0)  # of a closed code fence: where its text begins, and where it ends
        self._fenceless = ""  # characters of fences that close nowhere further on

    def take(self, mark: re.Match[str]) -> None:
        """Read up to `mark`, and what it changes."""
        group = mark.lastgroup or "chatml"
        if mark.start() < self._at or self._is_quoted(mark, group):
            return
        if group == "fence":
            self._fence(mark)
        elif group == "tag":
            self._block(mark, self._kinds[mark["name"].lower()], mark["tag"].lower(), bool(mark["slash"]))
        elif group == "token":
            self._block(mark, *blocks(mark["token"]))
        elif self._tool is None or self._tool[0] != "result":  # the page that a tool returns may say anything
            self._turn(mark, group)

    def _is_quoted(self, mark: re.Match[str], group: str) -> bool:
        """Whether a mark is only mentioned: alone between backticks, or in a code fence.

        A fence that opened before a turn ended quotes no headers, unless one is the first thing in it.
        """
        begin, end = self._quote
        if mark.start() < end:
            if group in _NOT_HEADERS:
                return True
            if not self._text[begin : mark.start()].strip() or begin < 0:
                self._quote = (-1, end)
                return True
            self._quote = (0, 0)
        if (
            self._is_report
            and group != "fence"
            and _SHOWN.search(self._text, max(mark.start() - 20, 0), mark.start())
        ):
            return True
        around = self._text[max(mark.start() - 1, 0) : mark.start()] + self._text[mark.end() : mark.end() + 1]
        return around in _QUOTES and group != "fence"

    def _fence(self, mark: re.Match[str]) -> None:
        """A fence in the report's text, if it opens at the start of a line and is closed later."""
        before = self._text[max(mark.start() - 4, 0) : mark.start()]
        indent = before.rpartition("\n")[2]
        char = mark["fence"][0]
        if indent.strip() or len(indent) > 3 or not self._is_report or char in self._fenceless:
            return
        line = self._text.find("\n", mark.end())
        closing = _FENCE_ENDS[char].search(self._text, line) if line >= 0 else None
        if closing is None:
            self._fenceless += char
        else:
            self._quote = (line, closing.end())

    @property
    def _is_report(self) -> bool:
        return self._role == "assistant" and not self._thinking and self._tool is None

    def done(self) -> Written:
        """The last assistant turn."""
        if not self._is_marked:
            text = unclosed(self._text)
            text = OPENING.sub("", text, count=1) if OPENING.match(text) else text
            return Written("", False) if is_call(text) else Written(text, True, not has_traces(text))
        if self._role == "assistant":
            is_whole = not self._thinking and (self._tool is None or self._finishes(len(self._text)))
            self._keep(len(self._text))
            found = "".join(self._said)
            is_whole = is_whole and not self._called
        else:
            is_whole = self._role in ("user", "system", "developer") and self._before.is_whole
            found = self._before.text
        if self._after_result:
            found = _BARE_ROLE.sub("", found, count=1) if _BARE_ROLE.match(found) else found
            is_whole = is_whole and bool(unclosed(found).strip())
        found = unclosed(found).strip()
        return Written(found, is_whole, self._is_clear and not has_traces(found))

    def _block(self, mark: re.Match[str], block: Block, name: str, closes: bool) -> None:
        """What opens or closes a block."""
        if block == "thought":
            self._thought(mark, closes)
        elif block == "answer":
            self._answer(mark, closes)
        elif self._thinking and block == "call":
            return  # a thought about a tool
        elif closes and (self._tool is None or self._tool == (block, name)):
            if block == "result":
                self._end_result()
            elif self._tool is None:
                self._forget()
            else:
                self._seam = True
                self._called = not self._finishes(mark.start())
            self._tool = None
            self._at = mark.end()
            if name == "<|tools_prefix|>" and self._text.startswith("[", self._at):
                self._end_result()  # what tools return follows in brackets
                self._at = _end_of_brackets(self._text, self._at)
            self._is_marked = True
        elif not closes and (self._tool is None or (block == "result" and self._tool[1] in OPEN_ENDED)):
            self._keep(mark.start())
            self._tool = (block, name)
            self._begun = mark.start()

    def _finishes(self, end: int) -> bool:
        """Whether the call that ends at `end`, and needs no token to end, says that the report is done."""
        is_whole = self._tool is not None and (end < len(self._text) or self._tool[1] in OPEN_ENDED)
        return is_whole and finishes(self._text[self._begun : end])

    def _thought(self, mark: re.Match[str], closes: bool) -> None:
        if self._tool is not None:
            return
        if not closes:
            self._keep(mark.start())
            self._seam = self._seam or self._spoken
        elif not self._thinking:
            self._forget()  # opened by the template
        self._thinking = not closes
        self._at = mark.end()
        self._is_marked = True

    def _answer(self, mark: re.Match[str], closes: bool) -> None:
        """A token before or after the answer proper: what the turn said before it is no part of it."""
        if not self._is_report:
            return
        if closes:
            self._keep(mark.start())
        else:
            self._forget()
        self._at = mark.end()
        self._is_marked = True

    def _forget(self) -> None:
        """What the turn has said so far is not its report."""
        self._said.clear()
        self._spoken = self._seam = self._called = False
        self._is_clear = True

    def _end_result(self) -> None:
        """A tool has spoken: what comes next is another turn."""
        self._forget()
        self._after_result = True
        if self._role != "assistant":
            self._role = "tool"

    def _turn(self, mark: re.Match[str], group: str) -> None:
        if group in ("longcat", "ended"):
            self._rounds = True
        elif group == "round" and not (self._rounds and self._role == "user"):
            return
        self._keep(mark.start())
        role, rest = role_of(mark), self._text[mark.end() : mark.end() + _EMPTY + 1]
        if (
            role == self._role == "assistant"
            and self._spoken
            and len(rest) <= _EMPTY
            and not unclosed(rest).strip()
        ):
            self._at = len(self._text)  # a turn was opened behind the report, and nothing said in it
            return
        if self._role == "assistant":
            if mark.start() > 0 or self._said:
                self._before = Written("".join(self._said), not self._called)
            self._after_result = False
        self._role = role
        self._forget()
        self._said = []
        self._tool = None
        self._thinking = False
        self._at = mark.end()
        self._is_marked = True

    def _keep(self, end: int) -> None:
        """Take what the assistant says up to `end`."""
        if self._is_report:
            said = self._text[self._at : end]
            self._said.append(said)
            if unclosed(said).strip():
                self._spoken = True
                self._called = False
                self._is_clear = self._is_clear and not self._seam
        self._is_marked = True
