"""The wire formats that vendors speak, a folder each."""
