"""The sockets and the HTTP of clients: connections, heads, bodies, TLS, CORS. The meaning of a request is not its
concern."""
