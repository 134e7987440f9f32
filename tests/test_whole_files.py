"""Files that are there whole or not at all."""

from pathlib import Path

import pytest

from adjudge.fetchers.files import whole_file, write_whole


def test_file_takes_its_place_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "run.json"
    write_whole(target, b"first")
    with whole_file(target) as unfinished:
        unfinished.write_bytes(b"sec")
        assert target.read_bytes() == b"first"
        unfinished.write_bytes(b"second")
    assert target.read_bytes() == b"second" and list(tmp_path.iterdir()) == [target]


def test_error_leaves_the_former_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "scores.parquet"
    write_whole(target, b"first")
    with pytest.raises(ValueError, match="half"), whole_file(target) as unfinished:
        unfinished.write_bytes(b"sec")
        raise ValueError("half")
    assert target.read_bytes() == b"first" and list(tmp_path.iterdir()) == [target]
    with pytest.raises(OSError, match="No such file"):
        write_whole(tmp_path / "missing" / "one", b"")
