"""What a protocol is, what it may do, and what it returns: all that a protocol of your own needs."""
