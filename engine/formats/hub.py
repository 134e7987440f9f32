"""Data sets of the Hugging Face Hub as local files: `hf:OWNER/NAME[@REVISION][/PATH]`.

PATH is a file, a folder or a pattern of files in the data set. Only files that some format reads are downloaded, into
`adjudge` in the Hub's cache (`HF_HOME`), as plain files by commit. Files already downloaded need no network. The token
is HF_TOKEN; without it, requests carry no token.
"""

import fnmatch
import os
import re
from pathlib import Path, PurePosixPath

import msgspec

from adjudge.engine.errors import UsageError
from adjudge.engine.formats.documents import READABLE
from adjudge.fetchers.files import write_whole

SCHEME = "hf:"
MAX_FILES = 20_000
MAX_FILE_BYTES = 1_000_000_000
MAX_BYTES = 5_000_000_000

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_ADDRESS = re.compile(rf"hf:({_NAME}/{_NAME})(?:@([A-Za-z0-9][A-Za-z0-9._-]{{0,99}}))?(?:/(.{{1,500}}))?")
_READ = READABLE | {".parquet"}
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SECONDS = 30.0


class HubError(UsageError):
    """A data set of the Hub cannot be used: its address, the problem, and what to do, in one line."""


class HubData(msgspec.Struct, frozen=True):
    """A data set in the cache, at a `commit`: the `files` that an address names, and the file or folder of its path."""

    place: Path
    files: tuple[Path, ...]
    commit: str


class _Listing(msgspec.Struct, frozen=True):
    """The files of a commit, by name, with their sizes in bytes."""

    commit: str
    sizes: dict[str, int]


def from_hub(address: str) -> HubData:
    """The data set at `address`, downloaded where it is not in the cache. Raises HubError."""
    name, revision, path = _parsed(address)
    try:
        import huggingface_hub  # optional
    except ImportError as error:
        raise HubError(
            f"{address}: needs huggingface-hub; install it with: pip install 'adjudge[hub]'"
        ) from error
    home = Path(huggingface_hub.constants.HF_HOME) / "adjudge" / name.replace("/", "--")
    listing = _remembered(home, revision) if _COMMIT.fullmatch(revision) else None
    listing = listing or _listed(address, name, revision, home)
    folder = home / listing.commit
    wanted = _wanted(address, listing, path)
    for file in wanted:
        if not _is_whole(folder / file, listing.sizes[file]):
            _download(address, name, listing, file, folder)
        if not (folder / file).resolve().is_relative_to(folder.resolve()):
            raise HubError(f"{address}: {folder / file} is a link that leads out of the cache; remove it")
    _keep(home, revision, listing)
    is_pattern = path not in wanted and not any(file.startswith(f"{path}/") for file in wanted)
    place = folder if is_pattern else folder / path
    return HubData(place, tuple(folder / file for file in wanted), listing.commit)


def dataset_name(address: str) -> str | None:
    """OWNER/NAME of the data set at `address`; None for what is not on the Hub. Raises HubError for a bad address."""
    return _parsed(address)[0] if address.startswith(SCHEME) else None


def _parsed(address: str) -> tuple[str, str, str]:
    """OWNER/NAME, the revision ("main" if none is given) and the path ("" if none is)."""
    match = _ADDRESS.fullmatch(address)
    if match is None or ".." in address or "--" in match[1]:
        raise HubError(f"{address[:200]!r}: not a data set of the Hub; write hf:OWNER/NAME[@REVISION][/PATH]")
    path = (match[3] or "").strip("/")
    if not _is_plain(path or "."):
        raise HubError(f"{address!r}: the path leads out of the data set; name a file or folder in it")
    return match[1], match[2] or "main", path


def _is_plain(name: str) -> bool:
    """Whether a name from outside stays in the folder that it is put in."""
    parts = PurePosixPath(name).parts
    return not (name.startswith("/") or "\\" in name or "\0" in name or ".." in parts or ":" in name)


def _listed(address: str, name: str, revision: str, home: Path) -> _Listing:
    """The Hub's current commit of `revision`; the last known one if the Hub cannot be reached."""
    from huggingface_hub import HfApi, errors  # optional
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]  # its HTTP library's

    try:
        api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=_token())
        info = api.dataset_info(name, revision=revision, files_metadata=True, timeout=_SECONDS)
    except errors.GatedRepoError as error:
        raise HubError(f"{address}: gated; accept its terms on the Hub, and set HF_TOKEN") from error
    except errors.RepositoryNotFoundError as error:
        raise HubError(
            f"{address}: no such data set, or a private one; correct the name, or set HF_TOKEN"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise HubError(
            f"{address}: no revision {revision!r}; use a branch, tag or commit of {name}"
        ) from error
    except (OSError, ValueError, HTTPError) as error:
        if (known := _remembered(home, revision)) is not None:
            return known
        raise HubError(f"{address}: {_unreachable(name, error)}") from error
    commit = info.sha or ""
    if not _COMMIT.fullmatch(commit):
        raise HubError(f"{address}: the Hub names no commit; pass a revision that is a commit")
    sizes = {one.rfilename: one.size or 0 for one in info.siblings or () if _is_plain(one.rfilename)}
    return _Listing(commit, sizes)


def _unreachable(name: str, error: Exception) -> str:
    why = " ".join(str(error).split())[:200] or type(error).__name__
    return (
        f"cannot be downloaded ({why}); where there is a network, run `hf download {name} --repo-type dataset "
        "--local-dir FOLDER`, copy FOLDER here, and give its path instead"
    )


def _token() -> str | bool:
    """HF_TOKEN; False, so that no other token is sent, where it is not set."""
    return os.environ.get("HF_TOKEN", "").strip() or False


def _wanted(address: str, listing: _Listing, path: str) -> list[str]:
    """The files of `path` that formats read. Raises HubError if there is none, or too much."""
    found = sorted(
        name
        for name in listing.sizes
        if PurePosixPath(name).suffix.lower() in _READ
        and (not path or name == path or name.startswith(f"{path}/") or fnmatch.fnmatchcase(name, path))
    )
    if not found:
        raise HubError(f"{address}: has no such file that a format reads; correct the path")
    sizes = [listing.sizes[name] for name in found]
    if len(found) > MAX_FILES or max(sizes) > MAX_FILE_BYTES or sum(sizes) > MAX_BYTES:
        raise HubError(
            f"{address}: {len(found):,} files of {sum(sizes):,} bytes, more than {MAX_FILES:,} files, "
            f"{MAX_FILE_BYTES:,} bytes each or {MAX_BYTES:,} together; add the path of what to read"
        )
    return found


def _download(address: str, name: str, listing: _Listing, file: str, folder: Path) -> None:
    from huggingface_hub import errors, hf_hub_download  # optional
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]  # its HTTP library's

    try:
        hf_hub_download(
            name,
            file,
            repo_type="dataset",
            revision=listing.commit,
            local_dir=folder,
            token=_token(),
            endpoint=os.environ.get("HF_ENDPOINT"),
        )
    except errors.GatedRepoError as error:
        raise HubError(f"{address}: gated; accept its terms on the Hub, and set HF_TOKEN") from error
    except (OSError, ValueError, HTTPError) as error:
        raise HubError(f"{address}: {file}: {_unreachable(name, error)}") from error
    if not _is_whole(folder / file, listing.sizes[file]):
        raise HubError(f"{address}: {file} did not arrive in its stated size; run the same command again")


def _is_whole(file: Path, size: int) -> bool:
    return file.is_file() and file.stat().st_size == size


def _remembered(home: Path, revision: str) -> _Listing | None:
    try:
        return msgspec.json.decode((home / f"{revision}.json").read_bytes(), type=_Listing)
    except (OSError, msgspec.MsgspecError):
        return None


def _keep(home: Path, revision: str, listing: _Listing) -> None:
    """Record the commit of the revision, for later use without network."""
    home.mkdir(parents=True, exist_ok=True)
    raw = msgspec.json.encode(listing)
    for name in {revision, listing.commit}:
        write_whole(home / f"{name}.json", raw)
