"""The program as a process, with vendors' SDKs and a real inference engine."""
