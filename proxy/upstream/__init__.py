"""Calls to vendors and their streams."""
