"""Several processes that serve on one port, and the supervisor that restarts them."""
