"""Replicate's predictions."""
