"""Record anew what slime's and NeMo-Gym's own code asks of adjudge: tests/golden/trainers/.

    ADJUDGE_REFERENCE=FOLDER python -m tests.trainers.record

FOLDER holds checkouts of their repositories, `slime` and `Gym`; the Python is that of `make test-trainers`. Runs the
tests of their code, and writes what they called if all of them pass.
"""

import os
import sys
from pathlib import Path

import pytest

from tests.trainers.recording import Record

TESTS = [str(Path(__file__).with_name(f"test_{trainer}.py")) for trainer in ("slime", "nemo_gym")]

if __name__ == "__main__":
    if not os.environ.get("ADJUDGE_REFERENCE"):
        sys.exit("ADJUDGE_REFERENCE is unset: set it to the folder that holds the checkouts slime and Gym")
    sys.exit(pytest.main([*TESTS, "-W", "ignore"], plugins=[Record()]))
