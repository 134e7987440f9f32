"""The viewer's pages."""
