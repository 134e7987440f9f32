"""The configuration: one YAML file, checked whole before anything runs."""
