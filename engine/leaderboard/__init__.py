"""From score rows to standings."""
