"""The site: its quickstart is typed as written, its reference pages are made from the code, public names stay."""

import importlib.util
import re
import shlex
import subprocess
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

import adjudge
from tests.public_names import RELEASED, public_names
from tests.test_readme import judge
from tests.worlds import ADJUDGE

ROOT = Path(__file__).parent.parent
QUICKSTART = (ROOT / "docs/quickstart.md").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
SERVER = "http://127.0.0.1:8000/v1"


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    """docs/pages.py, which mkdocs loads by its path."""
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "docs/pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_quickstart_works_as_typed(tmp_path: Path) -> None:
    """Its files are made as they stand, and its commands run in their order."""
    for name, text in re.findall(
        r'^```\w+ title="([\w.]+)"\n(.*?)^```$', QUICKSTART, re.MULTILINE | re.DOTALL
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    blocks = re.findall(r"^```\n(.*?)^```$", QUICKSTART, re.MULTILINE | re.DOTALL)
    typed = [
        shlex.split(line)
        for block in blocks
        for line in block.splitlines()
        if " adjudge.yaml" in line or "runs/first" in line
    ]
    assert [words[1] for words in typed] == ["plan", "evaluate", "show", "compare", "evaluate"]
    with judge() as url:
        said = [
            subprocess.run(
                [*ADJUDGE, *(word.replace(SERVER, url) for word in words[1:])],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for words in typed
        ]
    assert "rubrics" in said[1] and "312 metres" in said[2]


def test_reference_has_every_key_and_option(pages: ModuleType) -> None:
    names = public_names()
    keys, commands = pages.configuration_page(), pages.commands_page()
    for key in names["keys"]:
        assert f"`{key.rpartition('.')[2]}`" in keys, key
    for option in names["commands"]:
        word = option.rpartition(" ")[2]
        assert (
            f"`{word}`" in commands
            or f"`{option}`" in commands
            or word in ("adjudge", "-h", "--help", "--version")
        )


def test_reference_has_every_python_name() -> None:
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^::: (\S+)$", page, re.MULTILINE))
    assert named == {f"adjudge.{name}" for name in adjudge.__all__} | {"adjudge.scoring"}


def test_key_without_words_is_an_error(pages: ModuleType) -> None:
    from mkdocs.exceptions import PluginError

    with pytest.raises(PluginError, match=r"Outer\.silent: has no words"):
        pages._keys(Outer)


class Outer(msgspec.Struct):
    said: int = 0
    """Said."""
    silent: int = 0


def test_public_names_of_the_last_release_stay() -> None:
    """A name that goes is listed in the changelog (docs/versioning.md)."""
    released = msgspec.json.decode(RELEASED.read_bytes(), type=dict[str, list[str]])
    now = public_names()
    gone = {kind: set(names) - set(now[kind]) for kind, names in released.items()}
    unsaid = [
        name
        for names in gone.values()
        for name in names
        if not re.search(rf"^- Removed:.*`{re.escape(name)}`", CHANGELOG, re.MULTILINE)
    ]
    assert not unsaid, "gone, and no line `- Removed: ...` of the changelog names it"
