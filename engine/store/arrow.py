"""Between Arrow's columns and our values, without pandas.

Where pandas is installed, `pyarrow.scalar`, `pyarrow.array` and `to_numpy` import it, for a third of a second that a
command which only looks something up should not take.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["integers", "text", "whole"]


def text(value: str) -> pa.Scalar:
    """A string to compare columns with."""
    content = value.encode("utf-8", "surrogatepass")
    ends = np.array([0, len(content)], np.int32)
    return pa.StringArray.from_buffers(1, pa.py_buffer(ends), pa.py_buffer(content))[0]


def whole(value: int) -> pa.Scalar:
    """A 64-bit integer to compare columns with."""
    return pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(np.array([value], np.int64))])[0]


def integers(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """A column of integers or times without nulls, as int64[n]; its buffer may be read-only."""
    return np.from_dlpack(column.cast(pa.int64()).combine_chunks()).astype(np.int64, copy=False)
