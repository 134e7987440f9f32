"""What a kernel raises: `KernelError`, for input that no statistic can be made of."""


class KernelError(ValueError):
    """Input of a wrong shape or type, or an infinite score. A missing score is no error: it is absent."""
