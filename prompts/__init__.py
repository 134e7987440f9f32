"""The words a judge is shown: one Markdown file per question type and language, loaded and hashed.

A file `NAME.LANGUAGE.md` holds a template with placeholders `{{field}}`. Placeholders are filled in a single
pass (`Prompt.fill`), so text that itself looks like a placeholder is never interpreted.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

__all__ = ["SHIPPED", "Prompt", "PromptBook", "PromptError"]

SHIPPED = Path(__file__).parent
_PLACEHOLDER = re.compile(r"\{\{([a-z_0-9]+)\}\}")
_FILE_NAME = re.compile(r"[a-z0-9_]+\.[a-z]{2}\.md")
_FALLBACK = "en"
LANGUAGES = frozenset({"en", "zh"})


class PromptError(ValueError):
    """A prompt file is missing, unreadable or does not fit the shipped one. The message names the file."""


class Prompt(msgspec.Struct, frozen=True):
    """One template.

    `digest` is the blake2b-128 of its UTF-8 text; `placeholders` are the field names it needs.
    """

    name: str
    language: str
    template: str
    digest: bytes
    placeholders: frozenset[str]

    def fill(self, fields: Mapping[str, str]) -> str:
        """The template with every placeholder replaced, in a single pass. Raises PromptError for another one."""
        try:
            return _PLACEHOLDER.sub(lambda match: fields[match.group(1)], self.template)
        except KeyError as error:
            known = " or ".join(f"{{{{{name}}}}}" for name in fields) or "no placeholder"
            raise PromptError(
                f"{self.name}.{self.language}.md: its question has no field {error.args[0]!r}; write {known}"
            ) from error


class PromptBook:
    """All prompts of a run: the shipped files, overridden by equal file names in `overrides`.

    Raises `PromptError` at once when an override is unknown or its placeholders differ from the shipped file's.
    """

    def __init__(self, overrides: Path | None = None) -> None:
        self._prompts: dict[tuple[Path, str, str], Prompt] = {}
        self._overrides = {} if overrides is None else _overrides(overrides)

    def get(self, name: str, language: str, folder: Path = SHIPPED) -> Prompt:
        """The prompt `name` in `language`, or in English where it does not exist in that language.

        `folder` is where an external protocol keeps its own prompts; those are not overridden. Raises PromptError
        if there is no such file.
        """
        language = language if language in LANGUAGES else _FALLBACK
        found = self._prompts.get((folder, name, language))
        if found is None:
            file = folder / f"{name}.{language}.md"
            if not file.is_file():
                file = folder / f"{name}.{_FALLBACK}.md"
            override = self._overrides.get(file.name) if folder == SHIPPED else None
            found = self._prompts[folder, name, language] = override or _shipped(file)
        return found

    def digests(self) -> dict[str, str]:
        """File name to hex digest, for every shipped file as this book would use it."""
        files = sorted(SHIPPED.glob("*.*.md"))
        return {file.name: (self._overrides.get(file.name) or _shipped(file)).digest.hex() for file in files}


@cache
def _shipped(file: Path) -> Prompt:
    return _load(file)


def _load(file: Path) -> Prompt:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise PromptError(
            f"{file}: cannot be read: {error.strerror}; the question's prompt belongs there"
        ) from error
    except UnicodeDecodeError as error:
        raise PromptError(f"{file}: cannot be read as UTF-8 text: {error}") from error
    name, language, _ = file.name.split(".")
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return Prompt(name, language, text, digest, frozenset(_PLACEHOLDER.findall(text)))


def _overrides(folder: Path) -> dict[str, Prompt]:
    if not folder.is_dir():
        raise PromptError(f"{folder}: no such folder of prompts")
    found = {}
    for file in sorted(folder.glob("*.md")):
        if not _FILE_NAME.fullmatch(file.name) or not (SHIPPED / file.name).is_file():
            known = ", ".join(sorted(path.name for path in SHIPPED.glob("*.*.md")))
            raise PromptError(f"{file}: does not override a shipped prompt; the shipped ones are {known}")
        prompt, shipped = _load(file), _shipped(SHIPPED / file.name)
        if prompt.placeholders != shipped.placeholders:
            wanted = ", ".join(sorted(shipped.placeholders)) or "none"
            raise PromptError(f"{file}: its placeholders must be exactly: {wanted}")
        found[file.name] = prompt
    return found
