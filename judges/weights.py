"""Which model it is: a folder's files, hashed, or a name with its revision. The folder's location does not matter."""

import hashlib
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from adjudge.judges.errors import JudgeError

__all__ = ["identity_of"]

_WEIGHTS = frozenset({".bin", ".gguf", ".pt", ".safetensors"})
_SETTINGS = frozenset({".jinja", ".json", ".model", ".py", ".tiktoken", ".txt"})
_log = logging.getLogger(__name__)


def identity_of(model: str, revision: str) -> tuple[str, str]:
    """A model's name for people, and its identity for keys.

    Of a folder all files that make the model are hashed: weights, configuration, tokenizer, chat template. With a
    `revision` the weights are not hashed. Raises JudgeError for a path where there is no folder.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        suffixes = _SETTINGS if revision else _SETTINGS | _WEIGHTS
        stated = f"revision={revision} " if revision else ""
        return folder.resolve().name, f"{stated}files={_digest(folder, suffixes)}"
    if model.startswith(("/", "./", "../", "~")):
        raise JudgeError(f"judge: {model}: no such folder")
    if not revision:
        _log.warning(
            "judge: %s without revision: may change under the same name; set judge: revision:", model
        )
    return model, f"revision={revision or 'unstated'}"


def _digest(folder: Path, suffixes: frozenset[str]) -> str:
    files = sorted(path for path in folder.iterdir() if path.suffix in suffixes and path.is_file())
    if not files:
        raise JudgeError(f"judge: {folder}: contains no model")
    digest = hashlib.blake2b(digest_size=16)
    with ThreadPoolExecutor() as threads:
        for path, found in zip(files, threads.map(_file_digest, files), strict=True):
            digest.update(path.name.encode() + b"\0" + found)
    return digest.hexdigest()


def _file_digest(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "blake2b").digest()
    except OSError as error:
        raise JudgeError(f"judge: {path}: cannot be read: {error.strerror}") from error
