"""Measurements, printed as figures, without a verdict on time."""
