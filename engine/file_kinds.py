"""The kinds of files in which people keep tasks and reports, by the ends of their names."""

__all__ = ["DOCUMENTS", "KINDS", "SAVE_AS", "TABLES"]

TABLES = frozenset({".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".xlsx"})
DOCUMENTS = frozenset({".md", ".markdown", ".txt", ".html", ".htm", ".pdf", ".docx"})
KINDS = ", ".join([*sorted(TABLES), *sorted(DOCUMENTS), "or a .zip of these"])
"""The kinds of files that may hold reports, in words."""

SAVE_AS = dict.fromkeys((".doc", ".odt", ".rtf", ".pages"), ".docx") | dict.fromkeys(
    (".xls", ".ods", ".numbers"), ".csv"
)
"""Kinds of files that people keep reports in and that are not read, each with the kind to save them as."""
