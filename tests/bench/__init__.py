"""Measurements, printed as figures. Never a pass or fail on time."""
