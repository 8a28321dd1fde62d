"""Credentials that expire: fetch them, cache them and put them on calls."""
