"""The sockets and the HTTP of clients: connections, heads, bodies, TLS, CORS. Never what a request means."""
