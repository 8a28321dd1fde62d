"""Tests that send every cell of the capability matrix through a running gateway, and claims that hold for every
profile or surface."""
