"""Tests of `proxy/ledger`."""
