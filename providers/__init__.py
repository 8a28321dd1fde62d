"""What the vendors speak: wire formats and profiles as pure functions. Never sockets, clocks or randomness."""
