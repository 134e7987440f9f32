"""Speed and quality, measured beside other tools: `python -m benchmarks.NAME [--quick] [--json]`."""
