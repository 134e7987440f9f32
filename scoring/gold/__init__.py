"""Reviews of gold: what its items rest on, and which of them no report can be judged by."""
