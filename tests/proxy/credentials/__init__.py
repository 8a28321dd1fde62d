"""Tests of the credentials that expire."""
