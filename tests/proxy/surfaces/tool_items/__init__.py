"""Tests of tools and calls with items of their own."""
