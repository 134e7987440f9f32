"""What a protocol is, what it may do, and what it returns: everything that a protocol of your own needs."""
