"""The marks of chat templates: what opens and closes thoughts, calls, results and turns, in every family of models.

`marks` finds them in a text. Where a decoder has skipped special tokens, nothing but traces is left: a role's name
glued to a sentence, a call's bare JSON, labels of an agent; `has_traces` knows these.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from adjudge.engine.config.reward import ReportRules
from adjudge.engine.formats.messages import FINISHING, TOOLS
from adjudge.judges.marks import ANSWERS, ASSISTANT, BEFORE, BEHIND, THOUGHTS

__all__ = ["CLOSING", "OPENING", "Block", "blocks", "finishes", "has_traces", "is_call", "marks", "role_of"]

Block = Literal["thought", "call", "result", "answer"]

# Opening and closing token. A call without a closing one goes on until a result or another turn begins.
_PAIRS: dict[Block, tuple[tuple[str, str], ...]] = {
    "thought": THOUGHTS,
    "call": (
        ("[TOOL_CALLS]", ""),
        ("<|function_call|>", ""),
        ("<|python_tag|>", ""),
        ("<|python_start|>", "<|python_end|>"),
        ("<|tool_calls|>", "<|calls|>"),
        ("<|tool_call|>", "<|/tool_call|>"),
        ("<|tool_call>", "<tool_call|>"),
        ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
        ("<|tool_call_start|>", "<|tool_call_end|>"),
        ("<|tools_prefix|>", "<|tools_suffix|>"),
        ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
        ("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"),
        ("<|tool_calls_begin|>", "<|tool_calls_end|>"),
        ("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
        ("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),
        ("<|START_ACTION|>", "<|END_ACTION|>"),
        ("<|action_start|>", "<|action_end|>"),
        ("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),
        ("<|FunctionCallBegin|>", "<|FunctionCallEnd|>"),
        ("<|begin_search_query|>", "<|end_search_query|>"),
        ("<|begin_of_query|>", "<|end_of_query|>"),
        ("<|begin_click_link|>", "<|end_click_link|>"),
    ),
    "result": (
        ("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
        ("<|tool_response>", "<tool_response|>"),
        ("<|tool_response_start|>", "<|tool_response_end|>"),
        ("<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"),
        ("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
        ("<｜tool_outputs_begin｜>", "<｜tool_outputs_end｜>"),
        ("<|tool_outputs_begin|>", "<|tool_outputs_end|>"),
        ("<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>"),
        ("<|FunctionExecuteBegin|>", "<|FunctionExecuteEnd|>"),
        ("<|begin_search_result|>", "<|end_search_result|>"),
        ("<|begin_of_documents|>", "<|end_of_documents|>"),
        ("<|begin_click_result|>", "<|end_click_result|>"),
    ),
    "answer": ANSWERS,
}
_TOKENS: dict[str, tuple[Block, str, bool]] = {
    token: (block, opening, closes)
    for block, pairs in _PAIRS.items()
    for opening, closing in pairs
    for token, closes in ((opening, False), (closing, True))
    if token
}
OPEN_ENDED = frozenset(opening for opening, closing in _PAIRS["call"] if not closing)
"""Calls that nothing but a result or another turn ends."""

# The headers of turns. A name in them is the role.
_HEADERS = (
    r"<\|im_start\|>(?P<chatml>[a-z]{1,20})?"  # Qwen, Phi, OLMo, Hermes and many others
    r"|<\|im_(?P<kimi>user|assistant)\|>[^<]{0,40}<\|im_middle\|>|<\|im_system\|>(?P<kimi_system>[^<]{0,40})<\|im_middle\|>"
    r"|<\|start_header_id\|>(?P<llama>[a-z]{1,20})<\|end_header_id\|>"
    r"|<\|header_start\|>(?P<llama_4>[a-z]{1,20})<\|header_end\|>"
    r"|<start_of_turn>(?P<gemma>[a-z]{1,20})|<\|turn>(?P<gemma_4>[a-z]{1,20})"
    r"|<[|｜]BOT[|｜]>(?P<step>[a-z_]{1,20})"
    # GLM, Phi, Zephyr, DeepSeek, Command, Apertus, Apriel, Hunyuan
    r"|<[|｜](?:(?!end_)[a-z]{1,10}_)?(?P<named>(?i:user|assistant|chatbot|system|observation|tool_result|tool|bot|developer"
    r"|environment))(?:_start|_TOKEN|:[a-z]{1,20})?[|｜]>"
    r"|<\|message_sep\|>\s{0,8}(?P<gigachat>[a-z][a-z ]{0,20})<\|role_sep\|>|<\|role_sep\|>"
    r"|<\|open\|>message role=\"(?P<kimi_3>[a-z]{1,20})\"[^<]{0,200}<\|sep\|>"
    r"|</(?:user|assistant|system|tool)>\s{0,4}<(?P<laguna>user|assistant|system)>"
    r"|<\|start\|>(?P<harmony>[a-z]{1,20})"
    r"|<\|channel\|>(?P<channel>[a-z]{1,20})[^<]{0,80}(?:<\|constrain\|>[^<]{0,40})?<\|message\|>"
    r"|\[(?P<mistral>/?INST)\]"
    r"|<\|start_of_role\|>(?P<granite>[a-z_]{1,20})[^<]{0,200}<\|end_of_role\|>"
    r"|<seed:bos>(?P<seed>[a-z]{1,20})"
    r"|\]~b\](?P<minimax>[a-z]{1,20})|<beginning_of_sentence>(?P<minimax_1>[a-z]{1,20})"
    r"|<SPECIAL_1[01]>(?P<nemotron>[A-Za-z]{1,20})|<extra_id_[01]>(?P<nemotron_4>[A-Za-z]{1,20})"
    r"|\[\|(?P<exaone>user|assistant|system|tool)\|\]"
    r"|<role>(?P<ling>[A-Za-z]{1,20})</role>"
    r"|<\|begin\|>(?P<solar>[a-z]{1,20})|<sep> {0,2}(?P<reka>human|assistant):"
    r"|<\|(?P<dots>userprompt|response|extra_0)\|>"
    r"|\[Round \d{1,4}\] (?P<longcat>USER|ASSISTANT):|(?P<round>ASSISTANT|(?<=\n)Assistant):"
    r"|(?:</?s>|<[|｜][A-Za-z_▁]{1,40}[|｜]>)\s{0,4}(?:GPT4 Correct )?(?P<ended>(?i:user|human|assistant)):"
)
_ROLES = {
    "/inst": "assistant",
    "extra_0": "assistant",
    "final": "assistant",
    "function result": "tool",
    "response": "assistant",
    "human": "user",
    "inst": "user",
    "userprompt": "user",
    "tool_response": "tool",
    "tool_result": "tool",
}

# A token that closes a turn, spelled backwards: a search from the front is quadratic in the white space.
CLOSING = re.compile(
    r"\s*+(?:>\|[A-Za-z0-9_]{1,40}\|<|>[｜|][a-z0-9▁_:]{1,40}[｜|]<|>tnatsissa/<|>s/<|>soe<|>dap<|\]DAP\[|>nrut_fo_dne<|>\|nrut<"
    r"|>soe:dees<|\[~e\[|>s_tacgnol/<|>21_LAICEPS<|\]\|nrutfodne\|\[|>ecnetnes_fo_dne<|>ecnarettu_fo_dne<)\s*+"
)
OPENING = re.compile(r"\s{0,20}(?:<s>|<bos>|<\|begin_of_text\|>|<｜begin▁of▁sentence｜>)\s{0,20}")


_FIRST = re.compile(
    r"<[A-Za-z/|｜]|\[[A-Z/|]|◁|\]~b|```|~~~|A(?:SSISTANT|ssistant):"
)  # what marks begin with: seldom in prose


def marks(text: str, rules: ReportRules) -> Iterator[re.Match[str]]:
    """The tags of `rules` in `text`, fences, and the tokens and headers of templates.

    `lastgroup` says which: `tag`, `fence`, `token`, or the name of a header.
    """
    pattern, at = _pattern(rules), 0
    for first in _FIRST.finditer(text):
        mark = pattern.match(text, first.start()) if first.start() >= at else None
        if mark is not None:
            at = mark.end()
            yield mark


@lru_cache(maxsize=16)
def _pattern(rules: ReportRules) -> re.Pattern[str]:
    names = "|".join(map(re.escape, (*rules.thinking, *rules.calls, *rules.results)))
    # FunctionGemma says <start_function_call> and <end_function_call>.
    tags = (
        rf"<(?P<slash>/|end_)?(?:(?:start|begin)_)?(?P<tag>{BEFORE}(?P<name>(?i:{names})){BEHIND})(?:[\s=][^<>]{{0,200}})?>|"
        if names
        else ""
    )
    tokens = "|".join(map(re.escape, sorted(_TOKENS, key=len, reverse=True)))
    return re.compile(rf"{tags}(?P<token>{tokens})|(?P<fence>`{{3,}}|~{{3,}})|{_HEADERS}")


def blocks(token: str) -> tuple[Block, str, bool]:
    """What a `token` opens or closes, the block's opening token, and whether it closes."""
    return _TOKENS[token]


def role_of(mark: re.Match[str]) -> str:
    """The role that a header names; none is the assistant's, since the header of its turn is often cut in two."""
    named = mark[mark.lastgroup] if mark.lastgroup else None
    name = (named or "assistant").strip(" \r\n\t:").lower()
    if mark.lastgroup == "channel" and name != "final":
        return "thinking"
    name = _ROLES.get(name, name)
    return "assistant" if name in ASSISTANT else "tool" if name in TOOLS else name


_CODE = re.compile(
    r"(?ms)^[ \t]{0,3}(?P<fence>```|~~~)(?!tool_).*?^[ \t]{0,3}(?P=fence)[^\n]*$|`[^`\n]{1,400}`"
    r"|(?:(?<=\n\n)|\A)(?:(?: {4}|\t)[^\n]*+\n?+)++"
)
# What a tool returns may stand right behind its fence, so that the fence is not seen to close.
_FENCED_CALL = re.compile(r"function[a-z_]{1,60}\r?\n```json")
_OTHERS = r"(?:user|tool|ipython|observation|environment|human)"
_ITS_OWN = r"(?:assistant|model|ai|bot|chatbot)"
# Another's turn and then the model's own: roles alone on a line or glued to a title, and roles as titles.
_TURNS = (
    (
        re.compile(rf"(?im)^{_OTHERS}[ \t]{{0,20}}\r?$|^{_OTHERS}(?=[A-Z#])"),
        re.compile(rf"(?im)^{_ITS_OWN}[ \t]{{0,20}}\r?$|^{_ITS_OWN}(?=[A-Z#])"),
    ),
    (
        re.compile(r"(?m)^#{1,6} (?:User|Human|Instruction):"),
        re.compile(r"(?m)^#{1,6} (?:Assistant|AI|Bot|Response):"),
    ),
)
_LABELS = tuple(
    re.compile(rf"(?m)^{label}(?: \d{{1,3}})?[:：]")
    for label in (
        "(?:Thought|思考)",
        "(?:Action(?: Input)?|行动|行動)",
        "(?:Observation|OBSERVATION|观察|觀察)",
        "(?:Final Answer|最终答案|最終答案)",
    )
)
# Each with what stands in every text that it fits, in lower case: most reports have none of that.
_TRACES = tuple(
    (parts, re.compile(pattern, re.MULTILINE))
    for parts, pattern in (
        (
            ("assistant", "ipython", "message role"),
            r"(?<=[.!?。！？)\]}”」])(?:assistant|ipython)(?:\r?\n|\Z|(?=[^\sa-z0-9_,.;:'’)(\]\[/=-]))"
            r"|assistant(?:final|analysis|commentary)(?![a-z])|(?<![a-z] )assistant to=[a-z]|message role=\"",
        ),
        (("user:", "human:", "assistant:"), r"(?<=[.!?。！？)\]}”」])(?i:user|human|assistant): (?=\S)"),
        (("functions.",), r"\bfunctions\.[A-Za-z_]\w{0,60}:\d"),
        (
            ('name"', 'tool"'),
            r"[{,]\s{0,20}\"(?:name|tool_name|tool)\"\s{0,5}:\s{0,5}\"[^\"\n]{1,100}\"\s{0,5},\s{0,20}"
            r"\"(?:arguments|parameters|args|input)\"\s{0,5}:",
        ),
        (
            ("call_id", '"results"'),
            r"\{\s{0,20}\"(?:call_id|tool_call_id)\"\s{0,5}:|\[\{\s{0,20}\"results\"\s{0,5}:",
        ),
        (("```",), r"```tool_(?:code|output|call)"),
        (("<|", "<｜"), r"(?<!\\)<[|｜][A-Za-z0-9_▁]{2,40}[|｜]>"),  # a token of a family that is not known
        (("[tool_content]", "[args]", "[call_id]"), r"\[(?:TOOL_CONTENT|ARGS|CALL_ID)\]"),
        # the name of a tool before its arguments, calls by name alone, and a name with its arguments below
        (
            ("{",),
            r"(?<![\\\w])[A-Za-z_]\w{1,60}\{\s{0,5}\"[^\"\n]{1,100}\"\s{0,5}:"
            r"|(?<!\w)(?:call|response):[A-Za-z_]\w{0,60}\{"
            r"|\[\{\s{0,5}\"[a-z_]\w{0,60}\"\s{0,5}:\s{0,5}\{"
            r"|^(?!json\r?\n)[a-z_][\w.]{1,60}\r?\n\{\s{0,5}\"[^\"\n]{1,100}\"\s{0,5}:",
        ),
        (("thought",), r"\A\s{0,5}thought\r?\n"),
        # a heading behind a thought or turn whose end is gone
        (("# ",), r"(?<=[.!?。！？])(?:#{1,6} (?=\S)|[ \t]{1,4}#{1,6} (?=[^\n]{1,200}\r?\n[ \t]{0,4}\r?\n))"),
    )
)

_CALL = re.compile(
    r"\s{0,20}\[?\s{0,20}\{\s{0,20}\"(?:name|tool_name|tool)\"\s{0,5}:\s{0,5}\"[^\"\n]{1,100}\"\s{0,5},\s{0,20}"
    r"\"(?:arguments|parameters|args|input)\"\s{0,5}:"
)
# A block of a name that is not known, before the report. HTML and the parts of a report have names of their own.
_BEGINS = re.compile(r"\s{0,20}<([a-z][a-z0-9]{0,19}(?:[_:-][a-z0-9]{1,20}){0,3})>")
_SHOWN = frozenset(
    (
        "a abbr address article aside b big blockquote body caption center cite code dd del details div dl dt em"
        " fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 header hgroup html i ins kbd label li main mark"
        " math nav ol p pre q s samp section small span strike strong style sub summary sup svg table tbody td tfoot th"
        " thead time title tr tt u ul var"
        " abstract answer conclusion document essay final final_answer final_report introduction output paper report"
        " response solution text"
    ).split()
)


def _begins_with_block(text: str) -> bool:
    """Whether a tag of an unknown name opens `text` and closes before more of it."""
    opening = _BEGINS.match(text)
    if opening is None or opening[1] in _SHOWN:
        return False
    inside, closing, rest = text[opening.end() :].partition(f"</{opening[1]}>")
    return bool(closing and inside.strip() and rest.strip())


def is_call(text: str) -> bool:
    """Whether `text` is a call of a tool and nothing else."""
    return _CALL.match(text) is not None and text.rstrip().endswith(("}", "]"))


# What stands before and behind the name of a tool in a call, in its first characters.
_FINISH = re.compile(
    rf"[\"'=>:.｜\]]\s{{0,3}}(?:{'|'.join(FINISHING)})(?:\Z|[\r\n\"'>({{\[<｜])", re.IGNORECASE
)
_NAMED = 160


def finishes(call: str) -> bool:
    """Whether `call`, from the mark that opens it, is of the tool by which an agent says that its report is done."""
    return _FINISH.search(call[:_NAMED]) is not None


def has_traces(text: str) -> bool:
    """Whether `text`, code aside, shows traces of turns, calls or results that no mark tells apart. Linear."""
    if _FENCED_CALL.search(text):
        return True
    said = _CODE.sub(" ", text)
    lower = said.lower()
    if any(any(part in lower for part in parts) and trace.search(said) for parts, trace in _TRACES):
        return True
    if _begins_with_block(said):
        return True
    for others, its_own in _TURNS:
        other = others.search(said)
        if other is not None and its_own.search(said, other.end()):
            return True
    return sum(bool(label.search(said)) for label in _LABELS) > 1
