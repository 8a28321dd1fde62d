"""Fixtures for every test. Never one that only a single folder needs."""
