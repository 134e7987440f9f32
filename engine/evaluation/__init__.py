"""One case: asker, reader, router and limits, and how they are put together."""
