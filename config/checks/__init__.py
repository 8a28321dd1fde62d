"""Checks of a configuration beyond its syntax: errors, and warnings for settings that are probably not intended."""
