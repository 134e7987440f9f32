"""Writes a check's table, from standard input, into the pull request: one comment for a run, which later jobs update.

All else comes from the environment of a job in GitHub Actions. A comment that cannot be written is a warning: the
outcome of the check is the job's.
"""

import itertools
import json
import os
import sys
from collections.abc import Mapping
from typing import Any
from urllib.request import Request, urlopen

MOST = 60_000  # characters, of the 65,536 that a comment may have
AT_ONCE = 100  # comments
AUTHOR = "github-actions[bot]"  # who writes with a job's own token; a marker in another's comment is no claim to it


def main(table: str, job: Mapping[str, str]) -> None:
    """Create or update the comment."""
    base = f"{job['GITHUB_API_URL']}/repos/{job['GITHUB_REPOSITORY']}/issues"
    comments = f"{base}/{job['PULL_REQUEST']}/comments"
    marker = f"<!-- adjudge check {job['RUN']} -->"
    body = {"body": "\n".join((marker, _shown(table), "", f"[The job]({_address(job)})"))}
    try:
        known = _own(comments, marker, job["TOKEN"])
        if known is None:
            _ask("POST", comments, job["TOKEN"], body)
        else:
            _ask("PATCH", f"{base}/comments/{known}", job["TOKEN"], body)
    except (OSError, ValueError) as error:
        print(
            f"::warning title=adjudge check::no comment was written ({error}); the job needs "
            "`permissions: {pull-requests: write}`, which pull requests from forks cannot have"
        )


def _shown(table: str) -> str:
    """The table as it may stand in a comment: not too long, and calling nobody whose name a system bears."""
    if not table.strip():
        return "`adjudge check` could not compare; the job's log says why."
    if len(table) > MOST:
        table = table[:MOST].rpartition("\n")[0] + "\n\nThe rest is in the job's summary."
    return table.replace("@", "@\u200b")


def _address(job: Mapping[str, str]) -> str:
    return f"{job['GITHUB_SERVER_URL']}/{job['GITHUB_REPOSITORY']}/actions/runs/{job['GITHUB_RUN_ID']}"


def _own(comments: str, marker: str, token: str) -> int | None:
    """The number of the comment that an earlier job wrote."""
    for page in itertools.count(1):
        found = _ask("GET", f"{comments}?per_page={AT_ONCE}&page={page}", token)
        for one in found:
            if (one["user"] or {}).get("login") == AUTHOR and one["body"].startswith(marker):
                return int(one["id"])
        if len(found) < AT_ONCE:
            break
    return None


def _ask(method: str, url: str, token: str, body: object = None) -> Any:
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, headers, method=method), timeout=60) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main(sys.stdin.read(), os.environ)
