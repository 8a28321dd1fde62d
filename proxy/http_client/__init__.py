"""Calls of vendors over HTTP/1.1: connections, pools, and the transport on them."""
