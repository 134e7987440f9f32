"""One-to-one matching of flat and nested claims."""
