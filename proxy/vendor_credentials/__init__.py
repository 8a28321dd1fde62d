"""Fetches credentials that expire, caches them and puts them on calls."""
