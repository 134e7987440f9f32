"""Rubrics of one's own, and Rigorous Bench, which is built on rubrics."""
