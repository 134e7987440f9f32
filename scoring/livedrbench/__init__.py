"""LiveDRBench (Java et al., 2025): a report's claims against nested gold claims."""
