"""Two systems' reports on one task compared with each other."""
