"""Vendors' wire formats and profiles, as pure functions: no sockets, clocks or randomness."""
