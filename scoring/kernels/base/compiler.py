"""The compiler of the kernels: numba's, which releases the interpreter's lock.

Machine code is kept on disk beside the module (or in the user's cache folder if that is read-only), unless nothing can
be written there: then each process makes it anew. Its freshness is judged by the module's own file alone, so a compiled
function calls compiled functions of its own module only.

Importing this module takes a third of a second: `arrays` does so when a kernel is first called.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core.caching import FunctionCache

__all__ = ["compile_kernel"]

# Nothing calls a kernel by its address: without an entry for that, compiling takes a twentieth less. Numba's types do
# not know this option.
_UNCALLED: dict[str, Any] = {"no_cfunc_wrapper": True}


class _Cache(FunctionCache):
    """Machine code on disk. Where it cannot be written, as on a full disk, nothing is kept."""

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def compile_kernel(function: Callable[..., object], liberties: set[str]) -> Any:
    """Numba's dispatcher of `function`: it compiles for each kind of arguments at the first call with them.

    `liberties` are those of `fastmath`.
    """
    dispatcher = numba.njit(nogil=True, error_model="numpy", fastmath=liberties, **_UNCALLED)(function)
    with suppress(RuntimeError):  # no folder to keep it in
        dispatcher._cache = _Cache(function)  # type: ignore[no-untyped-call]
    return dispatcher
