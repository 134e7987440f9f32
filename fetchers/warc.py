"""Pages as a WARC file, the form of web archives: one conversion record of plain text for each page that was read."""

import io
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from adjudge.fetchers.page import Page

__all__ = ["write_warc"]


def write_warc(pages: Iterable[Page], path: str | Path) -> int:
    """Write `pages` as one compressed WARC file, whole or not at all; how many were read and are in it.

    What was fetched is kept as extracted text alone, so a record's digest is its text's; the body's own is in the
    header WARC-X-Body-SHA256. Raises ImportError where the optional package warcio is missing.
    """
    from warcio.warcwriter import WARCWriter  # optional

    target = Path(path)
    partial = target.with_name(f"{target.name}.partial")
    count = 0
    with partial.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for page in pages:
            if page.status == "read":
                writer.write_record(_record(writer, page))
                count += 1
    partial.replace(target)
    return count


def _record(writer: Any, page: Page) -> object:
    text = page.text.encode()
    headers = {
        "WARC-Date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(page.fetched_at)),
        "WARC-X-Requested-URI": _line(page.url),
        "WARC-X-Title": _line(page.title),
        "WARC-X-Body-SHA256": _line(page.sha256),
    }
    return writer.create_warc_record(
        _line(page.final_url),
        "conversion",
        payload=io.BytesIO(text),
        length=len(text),
        warc_content_type="text/plain; charset=utf-8",
        warc_headers_dict={name: value for name, value in headers.items() if value},
    )


def _line(text: str) -> str:
    """`text` without what would end a header's line."""
    return " ".join(text.split())
