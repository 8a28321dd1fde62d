"""Tests of the dialects, one file for each module."""
