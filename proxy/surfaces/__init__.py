"""The APIs that clients speak, one file each."""
