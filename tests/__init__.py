"""Tests of the three packages, which never import them."""
