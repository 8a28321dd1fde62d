"""Tests of `providers/emulation`."""
