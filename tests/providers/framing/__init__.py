"""Tests of `providers/framing`."""
