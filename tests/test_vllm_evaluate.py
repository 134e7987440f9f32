"""`adjudge evaluate` with its own vLLM engine, which loads a model only if a question must be asked."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
import yaml

from tests import local_vllm
from tests.examples import shipped
from tests.tiny_model import tiny_model
from tests.worlds import ADJUDGE

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]

EXAMPLE = shipped("quickstart")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The example, judged by the tiny model in its own engine, with a separate store and run folder."""
    settings = yaml.safe_load((EXAMPLE / "adjudge.yaml").read_text(encoding="utf-8"))
    judge = {"backend": "vllm", "model": str(tiny_model()), "engine": local_vllm.ENGINE}
    settings |= {
        "tasks": str(EXAMPLE / settings["tasks"]),
        "reports": [str(EXAMPLE / pattern) for pattern in settings["reports"]],
        "fetch": {"mode": "snapshot", "snapshot": str(EXAMPLE / "pages")},
        "judge": judge,
        "store": "store",
        "out": "run",
    }
    path = tmp_path / "adjudge.yaml"
    path.write_bytes(msgspec.yaml.encode(settings))
    return path


def adjudge(
    *arguments: object, codes: tuple[int, ...], command: Sequence[str] = ADJUDGE, **environment: str
) -> Any:
    done = subprocess.run(
        [*command, *map(str, arguments), "--json"],
        env=local_vllm.environment() | environment,
        capture_output=True,
    )
    assert done.returncode in codes, done.stderr.decode()
    return json.loads(done.stdout)


def test_example_completes_and_is_asked_once(config: Path) -> None:
    first = adjudge("evaluate", config, codes=(3,))
    judgments = pq.read_table(config.parent / "store" / "judgments").to_pylist()
    assert Counter(row["reason"] for row in judgments) == {None: first["from_judge"]}
    assert (first["scorecards"], first["unscored"], first["from_store"]) == (46, 3, 0)
    second = adjudge("evaluate", config, "--judge", f"vllm:{tiny_model()}", codes=(3,))
    assert (second["from_judge"], second["from_store"]) == (0, first["from_judge"])
    assert second["unscored"] == 3


def test_doctor_loads_and_asks_the_model_on_first_use(config: Path) -> None:
    # A file, unlike -c, which vLLM must not import.
    script = str(Path(sys.executable).with_name("adjudge"))
    cache = str(config.parent / "vllm")
    said = adjudge("doctor", config, codes=(0,), command=[script], VLLM_CACHE_ROOT=cache)
    found = {finding["what"]: finding["found"] for finding in said}
    assert found["judge"].startswith(f"{tiny_model()} answered in ")
    assert found["vllm (optional)"][0].isdigit()
