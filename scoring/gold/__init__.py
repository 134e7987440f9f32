"""Reviews of gold: what its items rest on, and which items cannot be used to judge reports."""
