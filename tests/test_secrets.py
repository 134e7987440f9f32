"""No secret leaves the process: not in a file, a log, a page, a metric or an error, however a run fails."""

import csv
import json
import logging
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.config.redaction import credentials, hidden, named_credentials, printable, printable_json
from adjudge.engine.errors import UsageError
from adjudge.engine.rewards.source import LoopThread
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.store import Place
from adjudge.engine.tables.files import write_leaderboard
from adjudge.engine.telemetry.logs import begin
from tests.commands import changed, one_line, run
from tests.mock_openai import Call, MockOpenAI, completion, refused
from tests.reward_server import SERVE, reward_server
from tests.worlds import CRITERIA, lines, world

CANARY = "c4n4ry"  # every planted secret contains it
PLANTED = {
    "ADJUDGE_TOKEN": f"token-{CANARY}-0",
    "ADJUDGE_FENCE_SECRET": f"fence-{CANARY}/+&1",
    "OPENAI_API_KEY": f"sk-{CANARY}-2",
    "AWS_SECRET_ACCESS_KEY": f"aws/{CANARY}+3",
    "HF_TOKEN": f'hf_"{CANARY}"\\4',
}
OTHERS = f"sk-proj-{CANARY}{'Q7x' * 9}"  # a key that is nobody's here
USER = f"ID{CANARY}:se/{CANARY}@"  # the credentials in an address
QUERY = f"?api-key={CANARY}5&api-version=1"


@pytest.fixture(autouse=True)
def planted(monkeypatch):
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)
    yield
    for logger in (logging.getLogger("adjudge"), logging.getLogger()):
        for handler in list(logger.handlers):
            if type(handler).__module__ == "adjudge.engine.telemetry.logs":
                logger.removeHandler(handler)


def echoed(call: Call) -> str:
    return f"said {call.http.headers} with {call.http.headers['Authorization']}"


async def _echo(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
    """Repeat the headers of the request, in the way that the model's name says."""
    name = json.loads(call.body)["model"]
    if name.isdecimal():
        return refused(
            int(name),
            f"{echoed(call)}; not {OTHERS}",
            Location=f"http://{USER}127.0.0.1/",
            X_Echo=echoed(call)[:200],
        )
    if name == "answer":
        text = call.answer()
        return completion(text.replace("because", call.http.headers["Authorization"][:40]))
    if name == "prose":
        return completion(echoed(call))
    if name == "refusal":
        return completion(None, refusal=echoed(call))
    if name == "length":
        return completion('{"analysis": "' + echoed(call), "length")
    return web.Response(body=echoed(call).encode(), reason=call.http.headers["Authorization"])


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a judge that repeats what it is sent, in a thread of its own."""
    thread: LoopThread[MockOpenAI] = LoopThread("judge", lambda: MockOpenAI(fault=_echo))
    yield thread.submit(_url).result()
    thread.close()


async def _url(mock: MockOpenAI) -> str:
    return mock.url


REPLIES = ["302", "400", "401", "402", "403", "404", "413", "422", "429", "500"]
REPLIES += ["answer", "prose", "refusal", "length", "reason"]


def cases(url: str) -> dict[str, dict[str, object]]:
    """Configurations that fail, or that a judge answers with secrets."""
    found: dict[str, dict[str, object]] = {
        f"judge says {name}": {"judge": {"backend": "openai", "url": url, "model": name, "retries": 0}}
        for name in REPLIES
    }
    with_login = url.replace("://", f"://{USER}")
    judge = {"backend": "openai", "model": "m", "retries": 0}
    dead = "http://127.0.0.1:1/v1"
    return found | {
        "login in judge": {"judge": {**judge, "url": with_login}},
        "key in judge": {"judge": {**judge, "url": url + QUERY}},
        "login in a SPEC": {"judge": f"openai:{with_login}#m"},
        "key in a SPEC": {"judge": f"openai:{url}{QUERY}#m"},
        "SPEC without a model": {"judge": f"openai:{with_login}"},
        "login in urls": {"judge": {**judge, "urls": [dead, with_login]}},
        "key in a panel": {"judge": {"backend": "panel", "members": ["lexical", f"openai:{url}{QUERY}#m"]}},
        "dead judge": {"judge": {**judge, "url": dead}},
        "login in store": {"store": f"s3://{USER}bucket/x?region=us-east-1"},
        "key in store": {"store": f"s3://bucket/x?secret_key={CANARY}"},
        "unknown scheme": {"store": f"what://{USER}bucket/x"},
        "login in tasks": {"tasks": f"https://{USER}example.org/tasks.jsonl"},
        "login in reports": {"reports": [f"https://{USER}example.org/r.jsonl"]},
        "login in prompts": {"prompts": f"https://{USER}example.org/prompts"},
        "login in snapshot": {"fetch": {"mode": "snapshot", "snapshot": f"https://{USER}example.org/"}},
        "login in out": {"out": f"https://{USER}example.org/"},
        "login in cluster": {"cluster": f"ray://{USER}127.0.0.1:10001"},
        "login in audit": {"reward": {"audit": {"judge": f"openai:{with_login}#m"}}},
        "key as an option": {"judge": {**judge, "url": dead, "api_key": f"sk-{CANARY}"}},
        "address as a key": {f"https://h/?token={CANARY}": 1},
    }


COMMANDS: dict[str, list[str]] = {
    "store option": ["evaluate", "CONFIG", "--store", f"s3://{USER}bucket/x"],
    "judge option": ["plan", "CONFIG", "--judge", f"openai:http://{USER}127.0.0.1:1/v1#m"],
    "store ls": ["store", "ls", f"s3://{USER}bucket/x"],
    "store ls json": ["store", "ls", f"s3://{USER}bucket/x", "--json"],
    "fetch": ["fetch", "CONFIG", "--store", f"s3://{USER}bucket/x"],
    "attack": ["attack", "--judge", f"openai:http://127.0.0.1:1/v1{QUERY}#m"],
    "surplus": ["plan", "CONFIG", f"https://{USER}example.org/?token={CANARY}"],
    "no such file": ["evaluate", f"https://{USER}example.org/adjudge.yaml"],
    "no such run": ["leaderboard", f"https://{USER}example.org/run"],
    "doctor": ["doctor", "CONFIG"],
    "doctor json": ["doctor", "CONFIG", "--json"],
}


def assert_clean(*texts: str | bytes, folder: Path) -> None:
    written = [path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".yaml"]
    for text in [*(text.encode() if isinstance(text, str) else text for text in texts), *written]:
        at = text.find(CANARY.encode())
        assert at < 0, text[max(0, at - 200) : at + 50]


def test_no_run_however_it_fails_shows_a_secret(tmp_path, capfd, server, monkeypatch):
    """About fifty failing runs with secrets wherever one can stand, half of them logging JSON."""
    failed = 0
    for number, (name, settings) in enumerate(cases(server).items()):
        monkeypatch.setenv("ADJUDGE_LOG", "json" if number % 2 else "human")
        folder = tmp_path / str(number)
        config = changed(world(folder, systems=1, tasks=1), **settings)
        code, out, errors = run(capfd, "evaluate", config)
        assert "Traceback" not in errors, name
        assert_clean(out, errors, folder=folder)
        failed += code != 0
        if (folder / "run" / "run.json").exists():
            shown = run(capfd, "show", folder / "run", "--task", "0", "--system", "system0")
            board = run(capfd, "leaderboard", folder / "run", "--markdown")
            assert_clean(*shown[1:], *board[1:], folder=folder)
    config = world(tmp_path / "c", systems=1, tasks=1, judge=cases(server)["judge says 401"]["judge"])
    for arguments in COMMANDS.values():
        code, out, errors = run(capfd, *(config if word == "CONFIG" else word for word in arguments))
        assert "Traceback" not in errors, arguments
        assert_clean(out, errors, folder=tmp_path)
        failed += code != 0
    assert failed >= 38


def test_credentials_are_refused_with_what_to_do(tmp_path, capsys):
    key = f"s3://KEY:{CANARY}@bucket/x"
    for place, settings in {
        "store": {"store": key},
        "judge.url": {"judge": {"backend": "openai", "model": "m", "url": f"http://h/v1{QUERY}"}},
        "tasks": {"tasks": f"https://u:{CANARY}@h/t.jsonl"},
    }.items():
        code, _, errors = run(capsys, "evaluate", changed(world(tmp_path), **settings))
        assert code == 2 and f"{place}: the address contains" in one_line(errors)
        assert "environment" in errors
    with pytest.raises(UsageError, match="AWS_SECRET_ACCESS_KEY"):
        Place.of(key)


def test_records_of_an_earlier_version_are_hidden(tmp_path, capsys):
    assert run(capsys, "evaluate", world(tmp_path))[0] == 0
    folder = tmp_path / "run"
    record = RunRecord.read(folder)
    command = [
        "adjudge",
        "evaluate",
        "--store",
        f"s3://KEY:{CANARY}@bucket",
        f"--judge=openai:http://h/v1{QUERY}#m",
    ]
    older = msgspec.structs.replace(record, command=command)
    (folder / "run.json").write_bytes(msgspec.json.encode(older))
    write_leaderboard(build_leaderboard([str(folder)]), tmp_path / "board")
    assert_clean(folder=tmp_path / "board")
    older.write(folder)
    assert_clean(folder=folder)
    assert RunRecord.read(folder).config == record.config


HEAD = b"POST /v1/rewards HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"


def test_malformed_requests_print_no_token(tmp_path):
    """Of whatever kind, and in neither form of log; a request is at most one line."""
    token = PLANTED["ADJUDGE_TOKEN"]
    head = HEAD % token.encode()
    for form in ("human", "json"):
        with (tmp_path / form).open("wb") as log, subprocess.Popen(
            [*SERVE, str(world(tmp_path, reward={"metric": "score_clipped"})), "--port", "0"],
            stdout=subprocess.PIPE, stderr=log, env={**os.environ, "ADJUDGE_LOG": form}, text=True,
        ) as process:  # fmt: skip
            try:
                assert process.stdout is not None
                port = int(process.stdout.readline().strip().rpartition(":")[2])
                for rest in (
                    b"Bad\x00Header: 1\r\n\r\n",
                    head[30:].replace(b"Bearer ", b"Bearer \x01"),
                    b"Content-Length: x\r\n\r\n",
                    b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
                    b"Authorization : Bearer " + token.encode() + b"\r\n\r\n",
                    b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
                    b"X: " + token.encode() * 2000 + b"\r\n\r\n",
                    b"\r\n\r\n" + token.encode() + b" / HTTP/9\r\n\r\n",
                ):
                    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
                        client.sendall(head + rest)
                        client.shutdown(socket.SHUT_WR)
                        while client.recv(1 << 16):
                            pass
            finally:
                process.terminate()
                process.wait(30)
        said = (tmp_path / form).read_text()
        assert CANARY not in said and "Traceback" not in said, said
        assert len(said.splitlines()) < 40


def test_server_errors_and_metrics_hold_no_secret(tmp_path, server):
    config = world(tmp_path, judge={"backend": "openai", "url": server, "model": "401", "retries": 0})
    changed(config, reward={"metric": "score_clipped"})
    token = PLANTED["ADJUDGE_TOKEN"]
    found = []
    with reward_server(config, token=token) as (url, _):
        for path, given, body in (
            ("/v1/rewards", token, {"items": [{"task_id": "0", "text": "a text"}]}),
            ("/v1/rewards", token, {"items": token}),
            ("/v1/rewards", f"wrong{CANARY}", {}),
            ("/metrics", token, None),
            ("/readyz", token, None),
            ("/openapi.json", token, None),
        ):
            data = None if body is None else json.dumps(body).encode()
            request = urllib.request.Request(url + path, data, {"Authorization": f"Bearer {given}"})
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    found.append(answer.read())
            except urllib.error.HTTPError as error:
                found.append(str(error.headers).encode() + error.read())
    assert_clean(*found, folder=tmp_path)


@given(
    st.text("ab/:@?&=#%", max_size=12),
    st.sampled_from(
        ["s3://K:{}@b", "https://{}@h/", "http://h/?token={}", "Bearer {}9", "Authorization: {}"]
    ),
)
def test_secret_is_hidden_whatever_stands_around_it(around, place):
    secret = "qwertyuiop"
    assert secret not in hidden(f"{around} {place.format(secret)} {around}")


@pytest.mark.parametrize(
    "harmless",
    [
        "s3://bucket/x?endpoint_override=127.0.0.1:9000&scheme=http&region=us-east-1",
        "gs://anonymous@bucket/x",
        "abfs://container@account.dfs.core.windows.net/x",
        "http://127.0.0.1:8000/v1?api-version=2024-10-21",
        "http://[::1]:8000/v1",
        "openai:http://127.0.0.1:8000/v1#org/model@v2",
        "https://example.org/@user/page?page=2",
        "the bearer token is missing or wrong",
    ],
)
def test_addresses_without_a_secret_stay_as_they_are(harmless):
    assert hidden(harmless) == harmless and credentials(harmless) is None


STEERING = "\x1b[31mred\x1b]0;title\x07 \x9b2J \u202egnp.exe \u2066x\u2069 \r\x08\x7f"
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def test_nothing_from_outside_steers_the_terminal(tmp_path, capsys, monkeypatch):
    """Names, evidence, rejected lines, errors and logs, as tables, Markdown and JSON."""
    name = f"system {STEERING}"
    config = world(tmp_path, systems=1, tasks=1)
    lines(
        tmp_path / "reports" / "odd.jsonl",
        [{"task_id": "0", "system": name, "text": STEERING}, {"task_id": 7}],
    )
    shown = [run(capsys, "evaluate", config)]
    folder = tmp_path / "run"
    shown.append(run(capsys, "leaderboard", folder, "--markdown"))
    shown.append(run(capsys, "leaderboard", folder, "--json"))
    shown.append(run(capsys, "show", folder, "--task", "0", "--system", name))
    shown.append(run(capsys, "compare", folder, name, "system0"))
    shown.append(run(capsys, "show", folder, "--task", "0", "--system", STEERING))
    shown.append(run(capsys, "evaluate", tmp_path / f"{STEERING}.yaml"))
    shown.append(run(capsys, "plan", config, "--protocol", STEERING))
    shown.append(run(capsys, "plan", config, STEERING))
    monkeypatch.setenv("ADJUDGE_LOG", "json")
    shown.append(run(capsys, "plan", config, "--protocol", STEERING))
    for code, out, errors in shown:
        assert code in (0, 2, 3)
        assert not STEERS.search(out + errors), (out + errors)[:2000]
    assert json.loads(shown[2][1])["metrics"][0]["standings"][0]["system"] in (name, "system0")


@pytest.mark.parametrize("form", ["human", "json"])
def test_logged_text_does_not_steer_the_terminal(capsys, form):
    begin(form)
    for name in ("adjudge", "some.library"):
        logging.getLogger(name).warning("it is called %s", STEERING)
    errors = capsys.readouterr().err
    assert errors.count("it is called") == 2 and not STEERS.search(errors)


@given(st.text())
def test_printable_json_is_the_same_document(text):
    assert json.loads(printable_json({"text": text})) == {"text": text}
    assert len(printable(text)) == len(text)


def test_spreadsheet_takes_names_as_text_and_numbers_as_numbers(tmp_path, capsys):
    config = world(tmp_path, systems=1, tasks=1)
    names = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "plain"]
    for number, name in enumerate(names):
        lines(
            tmp_path / "reports" / f"odd{number}.jsonl",
            [{"task_id": "0", "system": name, "text": "fact number 0"}],
        )
    assert CRITERIA and run(capsys, "evaluate", config)[0] == 0
    with (tmp_path / "run" / "leaderboard.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    systems = {row["system"] for row in rows}
    assert {f"'{name}".replace("\r", " ") for name in names[:-1]} | {"plain", "system0"} == systems
    assert all(float(row["value"]) <= 100 for row in rows if row["value"])


def test_unexpected_error_prints_no_secret(tmp_path):
    code = (
        "import sys; sys.argv = ['adjudge', 'doctor']\n"
        "from adjudge.engine.commands import main\n"
        "from adjudge.engine.commands import doctor\n"
        "def fails(*_): import os; raise KeyError(os.environ['OPENAI_API_KEY'] + chr(27))\n"
        "doctor.examine = fails\n"
        "main.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and "KeyError" in done.stderr
    assert CANARY not in done.stderr and "\x1b" not in done.stderr


WORDS = """
ollama snapshot fetch off lexical rubrics system0 system1 score overall scored unscored run store tasks reports running
finished supported 2026 20261127 12345678 true null gpt-4o-mini llama3-8b claude-3-5-sonnet-20241022 adjudge.yaml
reports/system0.jsonl Has-a-number v1.0.0 tasks.jsonl
""".split()
VARIABLES = ("OPENAI_API_KEY", "API_KEY", "BUILD_KEY", "SOME_TOKEN", "MY_SECRET")
OF_EACH_RUN = {"run", "started", "ended", "from_store", "from_judge", "spent"}


def test_thirty_ordinary_words_as_credentials_change_nothing(tmp_path, capsys, monkeypatch):
    """Five of them at a time: every datum, and every document that is printed, is as it was."""
    assert len(WORDS) >= 30
    monkeypatch.chdir(tmp_path)
    for name in PLANTED:
        monkeypatch.delenv(name)
    world(tmp_path, systems=2, tasks=1)
    expected = None
    for at in range(0, len(WORDS), 5):
        with monkeypatch.context() as patch:
            for variable, word in zip(VARIABLES, WORDS[at : at + 5], strict=False):
                patch.setenv(variable, word)
            assert run(capsys, "evaluate", "adjudge.yaml")[0] == 0
            shown = run(capsys, "show", "run", "--task", "0", "--system", "system0", "--json")[1]
            standings = json.loads(run(capsys, "leaderboard", "run", "--json")[1])["metrics"]
        record = json.loads((tmp_path / "run" / "run.json").read_text())
        assert "***" not in str(record)
        kept = {name: value for name, value in record.items() if name not in OF_EACH_RUN}
        found = kept, (tmp_path / "run" / "leaderboard.csv").read_text(), shown, standings
        expected = expected or found
        assert found == expected


NESTED = [
    {"api_key": "VALUE"},
    {"apiKey": "VALUE"},
    {"API-Key": "VALUE"},
    {"litellm_params": {"api_key": "VALUE"}},
    {"metadata": {"inner": {"deep": {"password": "VALUE"}}}},
    {"aws_secret_access_key": "VALUE"},
    {"aws_access_key_id": "VALUE"},
    {"fallbacks": [{"model": "b", "api_key": "VALUE"}]},
    {"fallbacks": [{"model": "b"}, {"extra_headers": {"Authorization": "Bearer VALUE"}}]},
    {"extra_headers": {"X-Thing": "VALUE"}},
    {"headers": {"X-Thing": "VALUE"}},
    {"options": [[{"client_secret": "VALUE"}]]},
    {"vertex_credentials": "VALUE"},
    {"proxy": {"auth": "VALUE"}},
    {"token": "VALUE"},
    {"hf_token": "VALUE"},
    {"session_token": "VALUE"},
    {"bearer": "VALUE"},
    {"cookie": "VALUE"},
    {"private_key": "VALUE"},
    {"note": "Bearer VALUE-1"},
    {"note": ["sk-proj-abcdefgh1234567890"]},
]


@pytest.mark.parametrize("request_", NESTED, ids=str)
def test_key_is_refused_by_its_name_at_every_depth(tmp_path, capsys, request_):
    options = json.loads(json.dumps(request_).replace("VALUE", f"{CANARY}-value"))
    judge = {"backend": "openai", "url": "http://127.0.0.1:1/v1", "model": "m", "request": options}
    code, out, errors = run(capsys, "evaluate", world(tmp_path, systems=1, tasks=1, judge=judge))
    assert code == 2 and "judge" in one_line(errors) and "request" in errors and "api_key_env" in errors
    assert "sk-proj" not in errors
    assert_clean(out, errors, folder=tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        {"max_completion_tokens": 5, "prompt_cache_key": "a", "stop_token_ids": [1], "eos_token": "</s>"},
        {"safety_identifier": "me", "metadata": {"author": "ann", "keyboard": "x", "keys": ["a"]}},
        {"chat_template_kwargs": {"bos_token": "<s>", "tokenizer": "x", "secretary": "bob"}},
    ],
)
def test_options_that_only_sound_like_keys_are_taken(options):
    assert not list(named_credentials(options, "request"))


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-aB3dE5gH7jK9mN1pQ3sT5vW7",
        "-".join(["sk", "ant", "api03", "aB3dE5gH7jK9mN1pQ3sT5vW7"]),
        "hf_aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
        "ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ1bC3dE5f",
        "AKIA" + "IOSFODNN7EXAMPLE",
        "-".join(["xoxb", "123456789012", "abcdefABCDEF"]),
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    ],
)
def test_keys_of_known_services_are_struck_as_whole_words(key):
    assert hidden(f"the key {key}, says it") == "the key ***, says it"
    assert hidden(f"file a{key}") == f"file a{key}"


@pytest.mark.parametrize(
    "harmless", ["sk-learn-1.4", "task-12 risk-free", "AKIA", "hf_hub", "gpt-4o", "sk-learn-contrib-forest"]
)
def test_words_like_keys_stay_in_messages(harmless):
    assert hidden(f"file {harmless}: not found") == f"file {harmless}: not found"


def test_address_in_data_keeps_its_words(tmp_path, capsys):
    """A page's address with a login or token is a citation like any other; only messages are changed."""
    cited = "https://u:pw@site.test/a?token=abc"
    config = world(tmp_path, systems=1, tasks=1)
    lines(
        tmp_path / "reports" / "system0.jsonl", [{"task_id": "0", "system": "s", "text": f"See {cited}. 12."}]
    )
    assert run(capsys, "evaluate", config)[0] == 0
    assert json.loads((tmp_path / "run" / "run.json").read_text())["systems"] == ["s"]
    assert "***" not in (tmp_path / "run" / "run.json").read_text()


def test_run_with_a_key_in_its_options_is_still_read(tmp_path, capsys):
    assert run(capsys, "evaluate", world(tmp_path, systems=1, tasks=1))[0] == 0
    file = tmp_path / "run" / "run.json"
    record = json.loads(file.read_text())
    record["config"]["judge"] = {
        "backend": "openai",
        "url": "http://127.0.0.1:1/v1",
        "model": "m",
        "request": {"metadata": {"api_key": CANARY}},
    }
    file.write_text(json.dumps(record))
    assert run(capsys, "show", tmp_path / "run", "--task", "0", "--system", "system0")[0] == 0
    assert CANARY in str(RunRecord.read(tmp_path / "run").config.judge)
    assert CANARY.encode() not in RunRecord.read(tmp_path / "run").encoded()
