"""One client request from its first byte to its last."""
