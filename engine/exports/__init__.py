"""Runs as the files of other tools, one module per tool."""
