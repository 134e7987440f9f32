"""What is shipped: reproducible builds, listed licences, one version number, no secrets."""

import csv
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

from tests.test_deploy import DEPLOY, checked, tool
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
        listed = {row["Name"].lower().replace("_", "-"): row["License"] for row in csv.DictReader(file)}
    lock = (DEPLOY / "requirements.lock").read_text()
    locked = re.findall(r"^([a-z0-9][a-z0-9.\-]*)==\S+(?: ; .*)? \\$", lock, re.MULTILINE)
    assert [name for name in locked if listed.get(name, "UNKNOWN") == "UNKNOWN"] == []
    assert set(listed) - set(locked) == {"adjudge"}
    copyleft = re.compile(r"\bA?GPL|Affero|GNU General Public")
    assert not [
        name for name, licence in listed.items() if copyleft.search(licence) and " OR " not in licence
    ]


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
