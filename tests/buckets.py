"""A local object store."""

import subprocess
import sys
import time
import urllib.request

import pytest
from pyarrow import fs

from tests.processes import free_port


@pytest.fixture(scope="module")
def bucket():
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    patch = pytest.MonkeyPatch()
    try:
        _wait(f"http://127.0.0.1:{port}/moto-api/")
        patch.setenv("AWS_ACCESS_KEY_ID", "x")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "y")
        fs.S3FileSystem(
            endpoint_override=f"127.0.0.1:{port}",
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        ).create_dir("bucket")
        yield (
            lambda path: f"s3://bucket/{path}?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
        )
    finally:
        patch.undo()
        process.terminate()
        process.wait()


def _wait(url: str) -> None:
    for _ in range(1200):
        try:
            urllib.request.urlopen(url, timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(url)
