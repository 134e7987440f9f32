"""A model's identity: independent of its folder, changed by any change of its files."""

import logging
import shutil
from pathlib import Path

import pytest

from adjudge.judges.errors import JudgeError
from adjudge.judges.vllm import identity_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "tiny"
    found.mkdir()
    (found / "config.json").write_text("{}")
    (found / "chat_template.jinja").write_text("{{ messages }}")
    (found / "model.safetensors").write_bytes(b"weights")
    (found / "README.md").write_text("read me")
    return found


def test_copied_folder_is_the_same_model(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    copy = Path(shutil.copytree(folder, tmp_path / "other" / "tiny"))
    (copy / "README.md").write_text("something else")
    assert identity_of(str(copy), "") == identity_of(str(folder), "")
    assert identity_of(str(folder), "")[0] == "tiny"


@pytest.mark.parametrize("name", ["config.json", "chat_template.jinja", "model.safetensors"])
def test_any_change_makes_another_model(folder: Path, name: str) -> None:
    before = identity_of(str(folder), "")
    (folder / name).write_bytes(b"changed")
    assert identity_of(str(folder), "") != before


def test_revision_replaces_the_weight_hash(folder: Path) -> None:
    before = identity_of(str(folder), "r1")
    assert identity_of(str(folder), "r2") != before
    (folder / "model.safetensors").write_bytes(b"changed")
    assert identity_of(str(folder), "r1") == before
    (folder / "chat_template.jinja").write_bytes(b"changed")
    assert identity_of(str(folder), "r1") != before


def test_model_name_is_identified_by_its_revision(caplog: pytest.LogCaptureFixture) -> None:
    assert identity_of("org/model", "r1") == ("org/model", "revision=r1")
    with caplog.at_level(logging.WARNING):
        assert identity_of("org/model", "")[1] == "revision=unstated"
    assert "set judge: revision:" in caplog.text


@pytest.mark.parametrize("path", ["/no/such/folder", "./none", "~/none"])
def test_missing_model_folder_is_a_judge_error(path: str) -> None:
    with pytest.raises(JudgeError, match="no such folder"):
        identity_of(path, "")


def test_folder_without_a_model_is_a_judge_error(tmp_path: Path) -> None:
    with pytest.raises(JudgeError, match="contains no model"):
        identity_of(str(tmp_path), "")
