"""A configuration that cannot be meant is one line with exit code 2, within a second, whatever the file holds."""

import time
from pathlib import Path

import pytest
import yaml

from adjudge.engine.config.settings import ConfigError
from adjudge.engine.config.yaml_file import load_yaml
from tests.commands import one_line, run
from tests.worlds import world

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
)
HOSTILE = {
    "lists of aliases": BOMB,
    "mappings of aliases": "a0: &a0 {x: 1}\n"
    + "".join(f"a{n}: &a{n} {{{', '.join(f'k{k}: *a{n - 1}' for k in range(9))}}}\n" for n in range(1, 9)),
    "merged aliases": "a0: &a0 {x: 1}\n"
    + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 25)),
    "a long text by aliases": "a: &a [" + "x" * 100_000 + "]\nb: [" + ", ".join(["*a"] * 200) + "]\n",
    "a list in itself": "a: &a [*a]\n",
    "a mapping in itself": "judge: &j {backend: lexical, request: *j}\n",
    "a merge of itself": "a: &a {<<: *a}\n",
    "a key that is itself": "? &a [*a]\n: 1\n",
    "deep lists": "a: " + "[" * 20_000,
    "deep mappings": "a: " + "{b: " * 20_000,
    "20,000 digits": "repeats: " + "7" * 20_000 + "\n",
    "20,000 digits as a key": "7" * 20_000 + ": 1\n",
    "20,000 hexadecimal digits": "repeats: 0x" + "f" * 20_000 + "\n",
    "base 60": "repeats: 1" + ":59" * 5_000 + "\n",
    "beyond 64 bits": "select: {limit: 99999999999999999999999}\n",
    "beyond 63 bits": "select: {limit: 9223372036854775808}\n",
    "more than can be": "select: {limit: 9223372036854775807}\n",
    "a limit that no report has": "report_limit: 500001\n",
    "a float beyond": "judge: {timeout_s: 1.0e+400}\n",
    "infinite": "max_cost: .inf\n",
    "no number": "max_cost: .nan\n",
    "no date": "date: 2024-99-99\n",
    "a NUL": 'out: "run\\0s/first"\n',
    "a NUL in a list": 'reports: ["a\\0.jsonl"]\n',
    "a NUL as a key": '"a\\0b": 1\n',
    "a NUL as it is": "out: a\0b\n",
    "a surrogate": 'out: "\\ud800"\n',
    "binary": "out: !!binary =\n",
    "a set": "out: !!set {a, b}\n",
    "an object": "out: !!python/object/apply:os.system [ls]\n",
    "two documents": "a: 1\n---\nb: 2\n",
    "nothing": "",
    "a word": "word",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_configuration_is_one_line(tmp_path, capsys, name):
    config = world(tmp_path, systems=1, tasks=1)
    words = HOSTILE[name]
    kept = yaml.safe_load(config.read_text())
    if words.partition(":")[0] in kept:
        kept.pop(words.partition(":")[0])
    evil = tmp_path / "evil.yaml"
    evil.write_text(words + (yaml.safe_dump(kept) if words.endswith("\n") and "---" not in words else ""))
    began = time.process_time()
    code, out, error = run(capsys, "plan", evil)
    assert (code, out) == (2, "") and "evil.yaml" in one_line(error) and len(error) < 1000
    assert time.process_time() - began < 10


def test_aliases_of_a_reasonable_file_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("base: &b {x: 1, y: [1, 2]}\nother: {<<: *b, x: 2}\nlist: [*b, *b]\nempty: ~\n")
    base = {"x": 1, "y": [1, 2]}
    assert load_yaml(file) == {
        "base": base,
        "other": {"x": 2, "y": [1, 2]},
        "list": [base, base],
        "empty": None,
    }


def test_problem_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("out: run\nrepeats: " + "7" * 5_000 + "\n")
    with pytest.raises(
        ConfigError, match=r"line 2, column 10: not valid YAML: 7{20}\.\.\. cannot be read as int"
    ):
        load_yaml(file)
