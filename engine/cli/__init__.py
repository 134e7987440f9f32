"""Words on the command line, progress and exit codes."""
