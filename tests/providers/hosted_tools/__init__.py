"""Tests of tools that vendors run themselves."""
