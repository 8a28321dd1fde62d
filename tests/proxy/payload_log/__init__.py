"""Tests of the payload log."""
