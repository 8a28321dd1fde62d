"""Tests of the commands. Never of the arguments; those are in `tests/proxy/test_cli.py`."""
