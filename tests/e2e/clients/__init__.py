"""The vendors' own SDKs, unmodified, as callers of the gateway. Never installed into the gateway's environment."""
