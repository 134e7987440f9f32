"""What a kernel raises: `KernelError`, for input that statistics cannot be computed from."""


class KernelError(ValueError):
    """Input of a wrong shape or type, or an infinite score. A missing score is not an error: it is absent."""
