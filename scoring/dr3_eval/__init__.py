"""DR3-Eval: insights, citations, facts, instructions and depth over a sandbox of sources."""
