"""The parser, progress, exit codes, and what commands print."""
