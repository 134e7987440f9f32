"""Time that counts only while something is being done."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

__all__ = ["Budget"]


class Budget:
    """The seconds that all requests of a page may take together; waiting between them is free."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._left = seconds

    @asynccontextmanager
    async def spend(self) -> AsyncIterator[None]:
        """Run the block on what is left. Raises TimeoutError when that is gone."""
        clock = asyncio.get_running_loop().time
        started = clock()
        expiry = asyncio.timeout(self._left)
        try:
            async with expiry:
                yield
        except TimeoutError:
            if not expiry.expired():
                raise
            raise TimeoutError(f"not received within {self._seconds:g} s") from None
        finally:
            self._left = max(0.0, self._left - (clock() - started))
