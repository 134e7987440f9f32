"""The paths in a configuration, which start at the folder of its file."""

from pathlib import Path
from typing import Any

from adjudge.engine.config.judge import rooted_judge

__all__ = ["rooted"]

_PATHS = ("tasks", "store", "out", "prompts")
_FILES = ("file", "checkout", "scraped")  # options of protocols, and of rewards' canaries


def rooted(raw: dict[str, Any], folder: Path) -> dict[str, Any]:
    """`raw` with its relative paths put below `folder`."""

    def from_folder(value: object) -> object:
        elsewhere = not isinstance(value, str) or "://" in value or value.startswith("hf:")
        return value if elsewhere else str(folder / str(value))

    def with_files(found: Any) -> Any:
        match found:
            case {**options}:
                return options | {name: from_folder(options[name]) for name in _FILES if name in options}
            case [*entries]:
                return [with_files(entry) for entry in entries]
        return found

    made = {"store": ".adjudge/store", "out": "runs/first", **raw}
    made |= {name: from_folder(made[name]) for name in _PATHS if name in made}
    if isinstance(made.get("reports"), list):
        made["reports"] = [
            {**one, "path": from_folder(one["path"])}
            if isinstance(one, dict) and "path" in one
            else from_folder(one)
            for one in made["reports"]
        ]
    if "protocols" in made:
        made["protocols"] = with_files(made["protocols"])
    if "judge" in made:
        made["judge"] = rooted_judge(made["judge"], folder)
    if isinstance(judges := made.get("judges"), dict):
        made["judges"] = {name: rooted_judge(one, folder) for name, one in judges.items()}
    fetch = made.get("fetch")
    if isinstance(fetch, dict) and "snapshot" in fetch:
        made["fetch"] = {**fetch, "snapshot": from_folder(fetch["snapshot"])}
    if isinstance(reward := made.get("reward"), dict):
        files = {name: with_files(reward[name]) for name in ("protocols", "canary", "log") if name in reward}
        made["reward"] = reward | files
    return made
