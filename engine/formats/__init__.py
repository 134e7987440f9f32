"""Layouts of tasks and reports, published ones and our own: one small module per layout, which reads a `Dataset`.

A layout is a function `read(tasks, reports) -> Dataset`, registered as an entry point `adjudge.formats`: `tasks` is the
file or folder in the configuration's `tasks:`, `reports` the files (`InputFile`) that match `reports:` (none if it is
not set).
"""
