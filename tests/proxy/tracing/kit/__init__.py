"""Shared helpers of the tests of tracing: a collector on a real socket, and requests that have ended."""
