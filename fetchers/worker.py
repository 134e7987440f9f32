"""A worker process: reads jobs from stdin and writes replies to stdout (`fetchers/process.py`) until stdin ends.

`python -P -m adjudge.fetchers.worker EXTRACTOR ADDRESS_SPACE_BYTES`
"""

import sys
from functools import partial
from typing import cast

import msgspec
from lxml import etree

from adjudge.fetchers.extract import extract, markup
from adjudge.fetchers.page import kind_of
from adjudge.fetchers.process import Extractor, Job, Reply, Unreadable, answer_jobs, at_most, resident
from adjudge.fetchers.signs import told

# What parsers raise on broken input. Anything else ends the process, which is the outer boundary.
_PARSER_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    etree.LxmlError,
)


def main(extractor: Extractor, address_space: int) -> None:
    """Answer jobs until stdin ends. `address_space` is a limit in bytes."""
    decoder = msgspec.msgpack.Decoder(Job)
    encoder = msgspec.msgpack.Encoder()

    def answer(payload: bytes) -> bytes:
        job = decoder.decode(payload)
        with at_most(job.seconds):
            return encoder.encode(_answer(job, extractor))

    answer_jobs(answer, address_space, partial(extract, b"<p>warm</p>", "text/html", extractor))


def _answer(job: Job, extractor: Extractor) -> Reply:
    found, problem = None, ""
    try:
        found = extract(job.body, job.content_type, extractor)
        html = kind_of(job.content_type, job.body) == "html"
        found = told(found, markup(job.body, job.content_type) if html else "")
    except Unreadable as error:
        problem = str(error)
    except _PARSER_ERRORS as error:
        problem = f"the parser gave up: {type(error).__name__}"
    return Reply(found, problem, resident())


if __name__ == "__main__":
    main(cast(Extractor, sys.argv[1]), int(sys.argv[2]))
