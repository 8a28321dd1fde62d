"""What coding agents send, how much it costs, and what it does to the requests beside it."""
