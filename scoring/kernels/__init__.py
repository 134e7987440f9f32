"""Statistics over arrays of scores, without judges or files; NaN marks missing scores."""
