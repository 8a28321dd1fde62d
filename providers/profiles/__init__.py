"""The vendors' profiles in `profiles.yaml`, their schema and their loader."""
