"""What the viewer reads of a run."""
