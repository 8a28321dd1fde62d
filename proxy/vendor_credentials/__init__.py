"""Credentials that expire: fetching them, keeping them, putting them on calls."""
