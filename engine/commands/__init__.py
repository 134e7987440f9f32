"""One module per command: what it does, its result, and how that is printed; `run(options)` returns the exit code."""
