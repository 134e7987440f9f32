"""The benchmarks whose own result files are read and written, by their `--format` names."""

__all__ = ["BENCHMARKS"]

BENCHMARKS = ("deepresearch-bench", "livedrbench", "dr3-eval", "rigorous")
