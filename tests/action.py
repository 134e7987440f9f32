"""The steps of the action for GitHub that are shell, each run as the script it is."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".github/actions/check"
ACTION = yaml.safe_load((FOLDER / "action.yml").read_text(encoding="utf-8"))


def action_step(
    step: str, given: Mapping[str, str], folder: Path, **job: str
) -> subprocess.CompletedProcess[str]:
    """Run the step with these inputs in `folder`, whose summary.md is the job's; `job` are the job's own values."""
    [wanted] = [one for one in ACTION["runs"]["steps"] if one.get("id") == step]
    assert "${{" not in wanted["run"], "what a user types is never part of the script"
    assert set(given) <= set(ACTION["inputs"])
    values = {f"inputs.{name}": given.get(name, one.get("default")) for name, one in ACTION["inputs"].items()}
    values |= {"github.token": "secret", "github.event.pull_request.number": "7"}
    named = {
        name: values[re.fullmatch(r"\$\{\{ ([\w.-]+) \}\}", text)[1]] for name, text in wanted["env"].items()
    }
    runner = {
        "GITHUB_ACTION_PATH": str(FOLDER),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "RUNNER_TEMP": str(folder),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
    }
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", wanted["run"]],
        cwd=folder,
        env={**runner, **job, **named},
        capture_output=True,
        text=True,
        check=False,
    )
