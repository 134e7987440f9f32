"""What `import adjudge` offers: evaluations, runs, scores and comparisons as Python objects."""
