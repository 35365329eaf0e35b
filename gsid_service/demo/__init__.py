"""`gsid demo`: a network that looks like an operator's, its collectors, and what happens to it."""
