"""The viewer's memory: what a page has read is given back once it is shown."""

import pyarrow as pa

__all__ = ["release", "use_little"]


def use_little(threads: int) -> None:
    """Let Arrow use the system's allocator, which can give memory back, and `threads` threads, as each has a heap."""
    pa.set_memory_pool(pa.system_memory_pool())
    pa.set_io_thread_count(threads)


def release() -> None:
    """Give free memory back to the system: a millisecond, and about 100 MB after a page with large cards."""
    pa.default_memory_pool().release_unused()
