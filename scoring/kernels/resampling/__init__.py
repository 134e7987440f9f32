"""Bootstrap, intervals and the stability of rankings."""
