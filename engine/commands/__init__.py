"""The command line: `main` and its parser, what commands share, and one module per command with `run(options)`."""
