"""One module per command, imported when it is chosen: `run` calls it, prints what it found and returns an exit code."""
