"""The program as a process, before vendors' SDKs and a real inference engine."""
