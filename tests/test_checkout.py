"""Prompts are read out of a checkout as data, and anything that is not one is refused with its place."""

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.judges.published import MAX_FILE_BYTES, Checkout, CheckoutError, Template

SOURCE = '''# A benchmark.
import nonesuch_package
raise SystemExit("never run")

plain = """Say {this} and \\u00e9."""
typed: str = "typed"
filled = """Task: {task} {{"score": 1}} of {task}, {report}"""
strange = "{task!r}"
indexed = "{0}"
dotted = "{task.id}"
broken = "{task"
part = "of two"
added = "a " + part + ", {task}"
looped = looped + "a"
unknown = "a" + nonesuch
counted = "a" * 2
many = "first"
many = "second"
grown = "a"
grown += "b"
marked = "Read {report} as {\\"json\\": 1}, then {report}; {report_title}"
prompts = {"short": "Short.", "long": ("Long, " "of two."), **{}}

class Judge:
    def ask(self, task, report):
        if report:
            prompt = f"Task {task}: {{x}} {len(report)} {report}"
        else:
            try:
                prompt = f"""Again: {task}"""
            except ValueError:
                prompt = "never"
        def inner():
            prompt = "another scope"
        return call(user=f"{report} for {task.id}"), call(user=f"{report} for {task.id}"), f"{task}"
    async def show(self):
        text = f"{self.task:>3}"
        more = f"{self.task!r}"
        return f"{a} or {b}", f"{b} or {a}"
    def cut(self, text):
        return text[:3] + " (cut)" + 1 if text else self.other + " (cut)"
'''


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / "prompts.py").write_text(SOURCE, encoding="utf-8")
    return Checkout(tmp_path)


def test_constants_are_read_without_running_the_file(checkout: Checkout) -> None:
    assert checkout.plain("prompts.py", "plain").fill({}) == "Say {this} and é."
    assert checkout.plain("prompts.py", "typed").fill({}) == "typed"
    assert checkout.plain("prompts.py", "prompts.long").fill({}) == "Long, of two."
    assert checkout.plain("prompts.py", "many", nth=1).fill({}) == "second"


def test_format_template_is_filled_like_str_format(checkout: Checkout) -> None:
    template = checkout.formatted("prompts.py", "filled")
    values = {"task": "{report} {{", "report": "{task}", "unused": "x"}
    assert template.fill(values) == 'Task: {report} {{ {"score": 1} of {report} {{, {task}'
    assert template.fields == {"task", "report"}
    assert checkout.formatted("prompts.py", "added").fill({"task": "T"}) == "a of two, T"
    with pytest.raises(KeyError):
        template.fill({"task": "alone"})


def test_markers_are_replaced_in_one_pass(checkout: Checkout) -> None:
    template = checkout.replaced("prompts.py", "marked", {"{report}": "text", "{report_title}": "title"})
    filled = template.fill({"text": "{report_title}", "title": "{report}"})
    assert filled == 'Read {report_title} as {"json": 1}, then {report_title}; {report}'
    with pytest.raises(CheckoutError, match=r"prompts\.py:\d+: holds no \{page\}"):
        checkout.replaced("prompts.py", "marked", {"{page}": "page"})


def test_fstring_takes_names_and_known_sources(checkout: Checkout) -> None:
    first = checkout.fstring("prompts.py", "Judge.ask.prompt", {"len(report)": "count"}, nth=0)
    assert first.fill({"task": "T", "count": "3", "report": "R"}) == "Task T: {x} 3 R"
    assert checkout.fstring("prompts.py", "Judge.ask.prompt", nth=1).fill({"task": "T"}) == "Again: T"
    inline = checkout.inline("prompts.py", "Judge.ask", {"report": "report", "task.id": "id"})
    assert inline.fill({"report": "R", "id": "7"}) == "R for 7"


def test_one_of_several_fstrings_is_taken_by_its_place(checkout: Checkout) -> None:
    fields = {"a": "a", "b": "b"}
    found = [checkout.inline("prompts.py", "Judge.show", fields, nth) for nth in (0, 1)]
    assert [one.fill({"a": "A", "b": "B"}) for one in found] == ["A or B", "B or A"]
    for nth in (None, 2):
        with pytest.raises(CheckoutError, match="holds 2 f-strings with a, b, not one"):
            checkout.inline("prompts.py", "Judge.show", fields, nth)


def test_constant_behind_a_text_is_found(checkout: Checkout) -> None:
    assert checkout.appended("prompts.py", "Judge.cut").fill({}) == " (cut)"
    with pytest.raises(CheckoutError, match="adds 0 constants to texts, not one"):
        checkout.appended("prompts.py", "Judge.ask")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("strange", "not a plain name"),
        ("indexed", "not a plain name"),
        ("dotted", "not a plain name"),
        ("broken", "not a template of str.format"),
        ("looped", "BinOp where a text constant"),
        ("unknown", "Name where a text constant"),
        ("counted", "BinOp where a text constant"),
        ("many", "holds 2 values named many"),
        ("grown", "holds 2 values named grown"),
        ("nonesuch", "holds nothing named nonesuch"),
        ("prompts.middle", "holds nothing named prompts.middle"),
        ("Judge.ask.prompt", "holds 3 values"),
        ("Judge.show.text", "JoinedStr where a text constant"),
    ],
)
def test_what_is_not_a_template_is_refused(checkout: Checkout, name: str, said: str) -> None:
    with pytest.raises(CheckoutError) as raised:
        checkout.formatted("prompts.py", name)
    assert said in str(raised.value)
    assert str(checkout.folder / "prompts.py") in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "nth", "said"),
    [
        ("Judge.ask.prompt", 0, "the placeholder {len(report)} is not a plain name"),
        ("Judge.ask.prompt", 2, "Constant where an f-string"),
        ("Judge.show.text", None, "a conversion or a format"),
        ("Judge.show.more", None, "a conversion or a format"),
    ],
)
def test_what_is_not_a_plain_fstring_is_refused(
    checkout: Checkout, name: str, nth: int | None, said: str
) -> None:
    with pytest.raises(CheckoutError) as raised:
        checkout.fstring("prompts.py", name, nth=nth)
    assert said in str(raised.value)
    with pytest.raises(CheckoutError, match="holds 2 f-strings with a, b, not one"):
        checkout.inline("prompts.py", "Judge.show", {"a": "a", "b": "b"})


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"prompt = (", "not valid Python"),
        (b"prompt = '\xff'", "not valid Python"),
        (b"prompt = '\x00'", "not valid Python"),
        (b"prompt = " + b"(" * 100_000, "not valid Python"),
        (b"prompt = " + b"-" * 1_000_000 + b"1", "not valid Python"),
        (b"#" * (MAX_FILE_BYTES + 1), "bytes"),
        (None, "cannot be read"),
    ],
)
def test_unreadable_file_is_refused_in_one_line(tmp_path: Path, source: bytes | None, said: str) -> None:
    if source is not None:
        (tmp_path / "prompts.py").write_bytes(source)
    with pytest.raises(CheckoutError) as raised:
        Checkout(tmp_path).plain("prompts.py", "prompt")
    assert said in str(raised.value) and "\n" not in str(raised.value)
    assert str(tmp_path / "prompts.py") in str(raised.value)


def test_parser_that_fails_by_chance_is_asked_again(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse, failures = ast.parse, [SystemError("AST constructor recursion depth mismatch")]

    def flaky(source: bytes) -> ast.Module:
        if failures:
            raise failures.pop()
        return parse(source)

    monkeypatch.setattr(ast, "parse", flaky)
    assert checkout.plain("prompts.py", "typed").fill({}) == "typed"


def test_constant_that_is_passed_is_found_by_its_name(tmp_path: Path) -> None:
    source = 'def ask(task):\n    call(system="You {judge}.", user=task)\n'
    source += '    say([{"content": "Hi."}, {"content": task}])\n'
    (tmp_path / "a.py").write_text(f'{source}def two():\n    call(system="a")\n    call(system="b")\n')
    checkout = Checkout(tmp_path)
    assert checkout.passed("a.py", "ask", "system").fill({}) == "You {judge}."
    assert checkout.passed("a.py", "ask", "content").fill({}) == "Hi."
    for scope, name in (("ask", "user"), ("two", "system")):
        with pytest.raises(CheckoutError, match=rf"a\.py:\d+: passes \d constants as {name}, not one"):
            checkout.passed("a.py", scope, name)


def test_digest_follows_the_wording_alone(tmp_path: Path) -> None:
    def read(source: str) -> Template:
        (tmp_path / "a.py").write_text(source, encoding="utf-8")
        return Checkout(tmp_path).formatted("a.py", "p")

    one = read("p = 'Say {x}.'")
    assert read("# moved\n\np = ('Say ' '{x}.')").digest == one.digest
    assert one.pieces == (("Say ", "x"), (".", ""))
    assert read("p = 'Say {y}.'").digest != one.digest
    assert read("p = 'Say {x}!'").digest != one.digest
    assert read("p = 'Say {{x}}.'").digest != one.digest


@given(text=st.text(alphabet="ab{}", max_size=12), value=st.text())
def test_format_template_agrees_with_str_format(
    tmp_path_factory: pytest.TempPathFactory, text: str, value: str
) -> None:
    try:
        wanted = text.format(a=value, b=value, ab=value, ba=value)
    except (ValueError, KeyError, IndexError):
        return
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "a.py").write_text(f"p = {text!r}", encoding="utf-8")
    template = Checkout(folder).formatted("a.py", "p")
    assert template.fill(dict.fromkeys(template.fields, value)) == wanted
