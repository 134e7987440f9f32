"""What each command does, one module per command. Nothing here prints."""
