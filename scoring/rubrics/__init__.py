"""Your own rubrics, and Rigorous Bench, which is built on rubrics."""
