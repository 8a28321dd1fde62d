"""The vendors: one profile each in `profiles.yaml`, its schema and its loader."""
