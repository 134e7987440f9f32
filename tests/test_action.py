"""The action for GitHub evaluates, checks, and keeps one comment in the pull request, before a server like GitHub's."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from tests.action import ACTION, ROOT, action_step
from tests.worlds import world

COMMENTS = "/repos/owner/name/issues/7/comments"
BOT = "github-actions[bot]"


class GitHub(ThreadingHTTPServer):
    """A pull request's comments: lists them by pages, creates and updates them, and answers `status` to what writes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.comments: list[dict[str, object]] = []
        self.asked: list[tuple[str, str]] = []
        self.refuses = False

    def put(self, body: str, login: str | None = BOT) -> None:
        user = None if login is None else {"login": login}
        self.comments.append({"id": 1000 + len(self.comments), "user": user, "body": body})

    @property
    def job(self) -> dict[str, str]:
        return {
            "GITHUB_API_URL": f"http://127.0.0.1:{self.server_port}",
            "GITHUB_SERVER_URL": "https://git.example",
            "GITHUB_REPOSITORY": "owner/name",
            "GITHUB_RUN_ID": "12",
        }


class _Handler(BaseHTTPRequestHandler):
    server: GitHub

    def do_GET(self) -> None:
        at = urlsplit(self.path)
        assert at.path == COMMENTS
        query = {name: int(value) for name, [value] in parse_qs(at.query).items()}
        start = (query["page"] - 1) * query["per_page"]
        self._answer(200, self.server.comments[start : start + query["per_page"]])

    def do_POST(self) -> None:
        assert self.path == COMMENTS
        if self._may_write():
            self.server.put(self._body())
            self._answer(201, self.server.comments[-1])

    def do_PATCH(self) -> None:
        [comment] = [
            one
            for one in self.server.comments
            if self.path == f"/repos/owner/name/issues/comments/{one['id']}"
        ]
        if self._may_write():
            comment["body"] = self._body()
            self._answer(200, comment)

    def _may_write(self) -> bool:
        if self.server.refuses:
            self._answer(403, {"message": "Resource not accessible by integration"})
        return not self.server.refuses

    def _body(self) -> str:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]

    def _answer(self, status: int, value: object) -> None:
        assert self.headers["Authorization"] == "Bearer secret"
        self.server.asked.append((self.command, self.path))
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def github() -> Iterator[GitHub]:
    with GitHub() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def comment(server: GitHub, folder: Path, table: str) -> subprocess.CompletedProcess[str]:
    (folder / "adjudge-check.md").write_text(table, encoding="utf-8")
    return action_step("comment", {"run": "runs/new"}, folder, **server.job)


def test_job_evaluates_checks_and_updates_one_comment(tmp_path: Path) -> None:
    world(tmp_path, systems=1, tasks=8)
    reports = (tmp_path / "reports/system0.jsonl").read_text()
    given = {"config": "adjudge.yaml", "run": "runs/new", "baseline": "runs/main"}
    assert action_step("evaluate", given | {"run": "runs/main"}, tmp_path).returncode == 0
    with github() as server:
        server.put("Looks good.", "ann")
        for text, code, outcome in (("Nothing of note.", 4, "regressed"), ("", 0, "passed")):
            worse = [json.loads(line) | ({"text": text} if text else {}) for line in reports.splitlines()]
            (tmp_path / "reports/system0.jsonl").write_text("\n".join(map(json.dumps, worse)))
            assert action_step("evaluate", given, tmp_path).returncode == 0
            checked = action_step("check", given, tmp_path)
            assert checked.returncode == code and outcome in checked.stdout, checked.stderr
            assert action_step("comment", given, tmp_path, **server.job).returncode == 0
            first, ours = server.comments
            assert first["body"] == "Looks good." and checked.stdout in str(ours["body"])
            assert str(ours["body"]).endswith("[The job](https://git.example/owner/name/actions/runs/12)")
        assert [method for method, _ in server.asked] == ["GET", "POST", "GET", "PATCH"]
    assert (tmp_path / ".adjudge/store").is_dir()


def test_numbers_to_reach_need_no_baseline(tmp_path: Path) -> None:
    world(tmp_path, systems=1, tasks=2)
    given = {"config": "adjudge.yaml", "run": "run"}
    assert action_step("evaluate", given, tmp_path).returncode == 0
    done = action_step("check", given | {"min": "rubrics.score=0 rubrics.score=0.99"}, tmp_path)
    assert done.returncode == 4 and "regressed" in done.stdout, done.stderr


def test_evaluation_that_cannot_be_made_ends_the_job(tmp_path: Path) -> None:
    done = action_step("evaluate", {"config": "none.yaml", "run": "run"}, tmp_path)
    assert done.returncode != 0 and "none.yaml" in done.stderr


def test_comment_is_found_on_a_later_page_and_only_ones_own(tmp_path: Path) -> None:
    marker = "<!-- adjudge check runs/new -->"
    with github() as server:
        for login in ("ann", None):
            server.put(f"{marker}\nmine", login)
        for number in range(150):
            server.put(f"remark {number}")
        server.put(f"{marker}\nold")
        server.put("<!-- adjudge check runs/other -->\nother")
        assert comment(server, tmp_path, "| a |").returncode == 0
        assert [one["body"] for one in server.comments if marker in str(one["body"])][:2] == [
            f"{marker}\nmine"
        ] * 2
        assert len(server.comments) == 154 and str(server.comments[-2]["body"]).startswith(
            f"{marker}\n| a |\n"
        )


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("| @ann |", "| @\u200bann |"),
        ("| row |\n" * 20_000, "| row |\n\nThe rest is in the job's summary."),
        ("", "`adjudge check` could not compare; the job's log says why."),
    ],
)
def test_comment_is_short_calls_nobody_and_is_never_empty(tmp_path: Path, table: str, said: str) -> None:
    with github() as server:
        assert comment(server, tmp_path, table).returncode == 0
        [one] = server.comments
    assert said in str(one["body"]) and len(str(one["body"])) < 65_536


def test_comment_that_may_not_be_written_is_a_warning(tmp_path: Path) -> None:
    with github() as server:
        server.refuses = True
        done = comment(server, tmp_path, "| a |")
    assert done.returncode == 0 and done.stdout.startswith("::warning ") and "HTTP Error 403" in done.stdout


def test_workflow_of_the_documentation_is_one(tmp_path: Path) -> None:
    [text] = re.findall(
        r"```yaml\n(name: .*?)```", (ROOT / "docs/check.md").read_text(encoding="utf-8"), re.S
    )
    text = text.replace("OWNER", "owner").replace("REVISION", "0" * 40)
    file = tmp_path / ".github/workflows/reports.yml"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    (tmp_path / ".github/zizmor.yml").write_bytes((ROOT / ".github/zizmor.yml").read_bytes())
    tools = Path(sys.executable).parent
    for command in (
        ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", str(file)],
        ["zizmor", "--offline", str(tmp_path)],
    ):
        done = subprocess.run([tools / command[0], *command[1:]], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    [job] = yaml.safe_load(text)["jobs"].values()
    [used] = [step["with"] for step in job["steps"] if "/actions/check@" in step.get("uses", "")]
    assert set(used) <= set(ACTION["inputs"])
