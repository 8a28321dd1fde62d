"""The APIs that clients speak, one file or package each."""
