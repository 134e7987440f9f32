"""Without vLLM, or with one that is too old, the judge says which it needs."""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import pytest

from adjudge.judges.errors import JudgeError
from adjudge.judges.vllm_engine import VLLMEngine

pytestmark = pytest.mark.skipif(find_spec("vllm") is not None, reason="the real vLLM is installed")

# What the judge imports of vLLM, without the exception that came with 0.29.
OLD = {
    "engine/arg_utils.py": "class AsyncEngineArgs: ...",
    "exceptions.py": "class VLLMNotFoundError(Exception): ...",
    "platforms/__init__.py": "current_platform = None",
    "usage/usage_lib.py": "class UsageContext: LLM_CLASS = None",
    "v1/engine/async_llm.py": "class AsyncLLM: ...",
}


@pytest.fixture(autouse=True)
def _same_environment() -> Iterator[None]:
    """Loading an engine gives vLLM its settings by the environment."""
    with patch.dict(os.environ):
        yield


@pytest.fixture
def old_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, text in OLD.items():
        file = tmp_path / "vllm" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "vllm"]:
        del sys.modules[name]


def test_missing_vllm_is_named_with_its_version() -> None:
    with pytest.raises(JudgeError, match=r"^judge: vllm 0\.29 or newer is not installed: pip install"):
        VLLMEngine.load("model", {})


@pytest.mark.usefixtures("old_vllm")
def test_vllm_that_is_too_old_is_named_before_it_loads() -> None:
    with pytest.raises(JudgeError, match=r"0\.29 or newer .*GracefulHTTPError"):
        VLLMEngine.load("model", {})
