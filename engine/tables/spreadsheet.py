"""Texts as cells that no spreadsheet takes for formulas: led by an apostrophe, which makes them texts there."""

import pyarrow as pa
import pyarrow.compute as pc

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|")
_FORMULA_STARTS = rf"\A([{''.join(_FORMULA)}])".replace("-", r"\-")


def plain_cell(text: str) -> str:
    """`text` as such a cell."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def plain_texts(table: pa.Table) -> pa.Table:
    """`table`, its columns of text as such cells; dictionary-encoded columns become plain ones."""
    for at, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type) or pa.types.is_string(column.type):
            texts = table.column(at).cast(pa.string())
            plain = pc.replace_substring_regex(texts, pattern=_FORMULA_STARTS, replacement=r"'\1")
            table = table.set_column(at, column.name, plain)
    return table
