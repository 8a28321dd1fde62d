"""The last hour of requests, minute by minute."""
