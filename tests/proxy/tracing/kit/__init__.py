"""What the tests of tracing share: a collector on a real socket, and requests that have ended."""
