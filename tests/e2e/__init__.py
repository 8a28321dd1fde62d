"""The whole process over real sockets, with real clients and a real engine."""
