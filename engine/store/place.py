"""Where a store is: a local folder or an object-store URI, through pyarrow.fs."""

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from adjudge.engine.errors import UsageError
from adjudge.engine.redaction import credentials

__all__ = ["Place", "StoreError"]


class StoreError(OSError):
    """A store cannot be reached, read or written; the message names its place."""


class Place(msgspec.Struct, frozen=True):
    """A folder of a filesystem. `uri` is as the user wrote it."""

    uri: str
    filesystem: Any
    path: str

    @classmethod
    def of(cls, uri: str) -> "Place":
        """The place that `uri` names: a local path, or scheme://... . Raises StoreError if it is unusable."""
        if (found := credentials(uri)) is not None:
            raise UsageError(
                f"store: the address contains {found}; remove it and set it in the environment "
                "(AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for s3://)"
            )
        try:
            if "://" in uri:
                filesystem, path = fs.FileSystem.from_uri(uri)
            else:
                filesystem, path = fs.LocalFileSystem(), str(Path(uri).absolute())
        except (pa.ArrowException, OSError, ValueError) as error:
            raise StoreError(f"{uri}: not a usable store: {error}") from error
        return cls(uri, filesystem, path)

    def __truediv__(self, name: str) -> "Place":
        """The folder `name` inside this one."""
        return Place(f"{self.uri.rstrip('/')}/{name}", self.filesystem, f"{self.path.rstrip('/')}/{name}")

    @property
    def is_local(self) -> bool:
        """Whether it is on the local filesystem (which may be a network mount)."""
        return isinstance(self.filesystem, fs.LocalFileSystem)

    def is_folder(self) -> bool:
        """Whether there is a folder here. Raises StoreError if the filesystem fails."""
        try:
            return bool(self.filesystem.get_file_info(self.path).type == fs.FileType.Directory)
        except OSError as error:
            raise StoreError(f"{self.uri}: cannot be inspected: {error}") from error

    def files(self) -> list[str]:
        """Names of the Parquet files here, sorted; empty if the folder does not exist."""
        try:
            found = self.filesystem.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
        except OSError as error:
            raise StoreError(f"{self.uri}: cannot be listed: {error}") from error
        return sorted(
            info.base_name for info in found if info.is_file and info.base_name.endswith(".parquet")
        )

    def size(self, name: str) -> int:
        """The size of the file `name` in bytes."""
        return int(self.filesystem.get_file_info(f"{self.path}/{name}").size)

    def open(self, name: str) -> pq.ParquetFile:
        """The Parquet file `name`, with its footer read. Raises StoreError if it cannot be read."""
        try:
            return pq.ParquetFile(self.filesystem.open_input_file(f"{self.path}/{name}"))
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"{self.uri}/{name}: cannot be read: {error}") from error

    def write(self, name: str, table: pa.Table, row_group: int) -> int:
        """Write `table` under `name`, atomically: a rename locally, one upload on object storage. Returns its bytes."""
        target = f"{self.path}/{name}"
        written = f"{self.path}/.{name}.tmp" if self.is_local else target
        try:
            self.filesystem.create_dir(self.path, recursive=True)
            with self.filesystem.open_output_stream(written) as sink:
                pq.write_table(table, sink, compression="zstd", compression_level=1, row_group_size=row_group)
                size = int(sink.tell())
            if self.is_local:
                self.filesystem.move(written, target)
            return size
        except OSError as error:
            raise StoreError(f"{self.uri}/{name}: cannot be written: {error}") from error

    def delete(self, name: str) -> None:
        """Delete the file `name`; a missing file is fine."""
        try:
            self.filesystem.delete_file(f"{self.path}/{name}")
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"{self.uri}/{name}: cannot be deleted: {error}") from error
