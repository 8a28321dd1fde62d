"""Calls to vendors and their streams; the only outbound sockets."""
