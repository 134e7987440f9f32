"""From scores to standings, comparisons, agreement and corrections."""
