import importlib
import pkgutil
from pathlib import Path
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import judges, prompts, scoring
from adjudge.judges import Context, Question
from adjudge.judges.chat import sizes
from adjudge.judges.schema import max_tokens, schema_of
from adjudge.prompts import Prompt, PromptBook, PromptError
from tests.examples_of_questions import example
from tests.stores import Ask

SHIPPED = sorted(Path(prompts.__file__).parent.glob("*.md"))
NAMES = sorted({file.name.split(".")[0] for file in SHIPPED})


def question_types() -> list[type[Question]]:
    """Every question type except base classes of others."""
    for package in (judges, scoring):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            importlib.import_module(module.name)
    found, waiting = [], [Question]
    while waiting:
        kinds = waiting.pop().__subclasses__()
        waiting.extend(kinds)
        found.extend(kind for kind in kinds if kind.__module__.startswith("adjudge."))
    asked = {kind for kind in found if hasattr(kind, "prompt")}
    return sorted(asked, key=lambda kind: kind.__qualname__)


TYPES = question_types()


@pytest.mark.parametrize("name", NAMES)
def test_prompts_exist_in_both_languages_with_same_placeholders(name: str) -> None:
    book = PromptBook()
    english, chinese = book.get(name, "en"), book.get(name, "zh")
    assert (english.language, chinese.language) == ("en", "zh")
    assert english.placeholders == chinese.placeholders
    assert english.template.strip()
    assert any("一" <= char <= "鿿" for char in chinese.template)
    assert not any("一" <= char <= "鿿" for char in english.template)


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_text_placeholder_has_its_own_line(kind: type[Question]) -> None:
    """Text is shown between marks on separate lines; numbers are shown unchanged."""
    hints = get_type_hints(kind)
    for language in ("en", "zh"):
        prompt = PromptBook().get(kind.prompt, language)
        for line in prompt.template.splitlines():
            for field in prompt.placeholders:
                placed = f"{{{{{field}}}}}" in line and hints[field] not in (int, float)
                assert not placed or line == f"{{{{{field}}}}}"
        assert prompt.template.count("{{") == prompt.template.count("}}")


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_every_question_shows_exactly_its_fields(kind: type[Question]) -> None:
    fields = set(kind.__struct_fields__) - set(Question.__struct_fields__)
    for language in ("en", "zh"):
        assert PromptBook().get(kind.prompt, language).placeholders == fields


def test_every_prompt_is_used_by_a_question() -> None:
    assert {kind.prompt for kind in TYPES} | {"preamble"} == set(NAMES)


def test_question_types_have_distinct_names() -> None:
    """A question's name is part of its key."""
    names = [kind.__name__ for kind in TYPES]
    assert len(set(names)) == len(names)


def test_override_replaces_one_file_and_its_digest(tmp_path: Path) -> None:
    (tmp_path / "probe.en.md").write_text("Say yes.", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not a prompt", encoding="utf-8")
    plain, book = PromptBook(), PromptBook(tmp_path)
    assert book.get("probe", "en").template == "Say yes."
    assert book.get("probe", "zh") == plain.get("probe", "zh")
    changed = {name for name, digest in book.digests().items() if digest != plain.digests()[name]}
    assert changed == {"probe.en.md"}
    assert set(plain.digests()) == {file.name for file in SHIPPED}


@pytest.mark.parametrize("name", ["prob.en.md", "probe.fr.md", "probe.md", "PROBE.en.md", "README.md"])
def test_override_of_an_unknown_prompt_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("Say yes.", encoding="utf-8")
    with pytest.raises(PromptError, match="does not override a shipped prompt") as raised:
        PromptBook(tmp_path)
    assert str(tmp_path / name) in str(raised.value)
    assert "probe.en.md" in str(raised.value)


@pytest.mark.parametrize("text", ["", "{{task}}", "{{task}} {{criterion}} {{values}} {{extra}}"])
def test_override_with_other_placeholders_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "rubric_points.en.md").write_text(text, encoding="utf-8")
    with pytest.raises(PromptError, match="placeholders must be exactly: criterion, task, values"):
        PromptBook(tmp_path)


def test_override_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "probe.en.md").write_bytes(b"\xff\xfe")
    with pytest.raises(PromptError, match="UTF-8"):
        PromptBook(tmp_path)
    with pytest.raises(PromptError, match="no such folder"):
        PromptBook(tmp_path / "missing")


def test_language_without_prompts_falls_back_to_english() -> None:
    assert PromptBook().get("probe", "fr") == PromptBook().get("probe", "en")


def test_missing_prompt_is_an_error() -> None:
    with pytest.raises(PromptError, match=r"nonesuch\.en\.md: .*; the question's prompt belongs there"):
        PromptBook().get("nonesuch", "en")


@given(st.text(), st.text())
def test_fill_is_a_single_pass(one: str, two: str) -> None:
    prompt = Prompt("p", "en", "a {{one}} b {{two}} c {{one}}", b"", frozenset({"one", "two"}))
    assert prompt.fill({"one": one, "two": two}) == f"a {one} b {two} c {one}"
    assert prompt.fill({"one": "{{two}}", "two": "{{one}}"}) == "a {{two}} b {{one}} c {{two}}"


def test_fill_requires_every_field() -> None:
    prompt = Prompt("p", "en", "{{one}}", b"", frozenset({"one"}))
    with pytest.raises(PromptError, match=r"p\.en\.md: its question has no field 'one'; write \{\{two\}\}"):
        prompt.fill({"two": "2"})


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_every_answer_fits_into_a_window_of_32k(kind: type[Question]) -> None:
    """With 8,000 tokens left for what is judged."""
    schema = schema_of(example(kind), analysis=True)
    assert max_tokens(schema) <= 24_000


def test_size_of_a_prompt_in_a_folder_of_its_own_is_known(tmp_path: Path) -> None:
    class Own(Ask, frozen=True, kw_only=True):
        folder = tmp_path

    (tmp_path / f"{Own.prompt}.en.md").write_text("Longer than the text.\n" * 9)
    assert sizes(Own(context=Context.of(note="x")), PromptBook()) == (1, 9 * len("Longer than the text.\n"))
