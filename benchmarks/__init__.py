"""Speed and quality, measured side by side with what others use: `python -m benchmarks.NAME [--quick] [--json]`."""
