"""Tests of tools and calls that have items of their own."""
