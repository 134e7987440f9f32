"""What is misspelt is answered with the nearest that there is, in one line."""

import msgspec
import pytest

from adjudge.engine.config.settings import mistake
from adjudge.engine.errors import nearest
from tests.commands import changed, one_line, run
from tests.worlds import world


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["evaluat", "x"], "unknown value 'evaluat'; use 'evaluate'"),
        (["evaluate", "x", "--protocal", "fact"], "--protocal: unknown option; use '--protocol'"),
        (["evaluate", "x", "--fetch", "liv"], "--fetch: unknown value 'liv'; use 'live'"),
        (["plan", "x", "--jsno"], "--jsno: unknown option; use '--json'"),
        (["store", "compct", "x"], "unknown value 'compct'; use 'compact'"),
        (["plan", "x", "y"], "y: unexpected argument"),
        (["serve"], "required: CONFIG"),
        (["plan", "x", "--limit=many"], "--limit"),
    ],
)
def test_misspelt_words_on_the_command_line(capsys, words, said):
    code, out, error = run(capsys, *words)
    assert (code, out) == (2, "") and said in one_line(error) and "--help` lists all options" in error


def test_command_line_alone_prints_its_help(capsys):
    code, out, error = run(capsys)
    assert (code, error) == (0, "") and "usage: adjudge" in out and "evaluate" in out


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"taks": "x"}, "taks: unknown key; use 'tasks'"),
        ({"judge": {"bakend": "lexical"}}, "judge.bakend: unknown key; use 'backend'"),
        ({"judge": {"members": [{"ulr": "x"}]}}, "judge.members[0].ulr: unknown key; use 'url'"),
        ({"judges": {"race": {"modell": "x"}}}, ".modell: unknown key; use 'model'"),
        ({"fetch": {"limits": {"per_hots": 1}}}, "fetch.limits.per_hots: unknown key; use 'per_host'"),
        ({"reports": [{"pat": "x"}]}, "reports[0].pat: unknown key; use 'path'"),
        ({"protocols": [{"name": "race", "ordr": 1}]}, "race: ordr: unknown key; use 'order'"),
        ({"protocols": ["rubrisc"]}, "unknown protocol 'rubrisc'; use 'rubrics'"),
        ({"format": "adjugde"}, "unknown format 'adjugde'; use 'adjudge'"),
        ({"select": {"systems": ["sistem1"]}}, "unknown system 'sistem1'; use 'system1'"),
    ],
)
def test_misspelt_words_in_a_configuration(tmp_path, capsys, settings, said):
    code, _, error = run(capsys, "plan", changed(world(tmp_path), **settings))
    assert code == 2 and said in one_line(error)


def test_misspelt_names_of_a_run(tmp_path, capsys):
    run(capsys, "evaluate", world(tmp_path))
    for words, said in (
        (["compare", tmp_path / "run", "system0", "sistem1"], "'sistem1' is not in this run; use 'system1'"),
        (["show", tmp_path / "run", "--task", "0", "--system", "Sytem2"], "use 'system2'"),
        (["show", tmp_path / "run", "--task", "nine", "--system", "system0"], "use '0' or '1' or '2'"),
    ):
        code, _, error = run(capsys, *words)
        assert code == 2 and said in one_line(error)


def test_keys_are_offered_wherever_a_value_stands():
    class Inner(msgspec.Struct, forbid_unknown_fields=True):
        colour: str = ""

    class Outer(msgspec.Struct, forbid_unknown_fields=True):
        one: Inner | str | None = None
        many: dict[str, list[Inner]] = {}

    for raw, said in (
        ({"one": {"color": 1}}, "one.color: unknown key; use 'colour'"),
        ({"many": {"a": [{"color": 1}]}}, "many[...][0].color: unknown key; use 'colour'"),
        ({"many": 1}, "many: must be a mapping, not a whole number"),
        ({"x` - at `$.one": 1}, "unknown key"),
    ):
        with pytest.raises(msgspec.ValidationError) as raised:
            msgspec.convert(raw, Outer)
        assert said in mistake(raised.value, Outer, raw)


def test_nearest_is_found_whatever_the_length():
    assert nearest("SYSTEM1", ["system1", "system2"]).startswith("use 'system1'")
    many = nearest("x", [f"name{n}" for n in range(30)])
    assert many == "there are 30 others, none like it: 'name0', 'name1', 'name2' and so on"
    assert nearest("x", []) == "leave it out"
    assert nearest("task", ["mask", "task_id", "text"]).startswith("use 'task_id' or 'mask'")
    assert "use" in nearest("a" * 1_000_000, ["a" * 1_000_000, "b"])
