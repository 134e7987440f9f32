"""The command line in the test's own process: its exit code and what it prints."""

from pathlib import Path

import pytest
import yaml

from adjudge.engine.commands.main import main


def run(capsys, *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit:
        main([str(argument) for argument in arguments])
    streams = capsys.readouterr()
    code = exit.value.code
    return (code if isinstance(code, int) else 1), streams.out, streams.err


def changed(config: Path, **settings: object) -> Path:
    config.write_text(yaml.safe_dump({**yaml.safe_load(config.read_text()), **settings}))
    return config


def one_line(error: str) -> str:
    lines = [line for line in error.strip().splitlines() if not line.startswith("follow it: ")]
    assert len(lines) == 1 and lines[0].startswith("adjudge: "), error
    assert "Traceback" not in error
    return error
