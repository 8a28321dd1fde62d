"""The wire formats that vendors speak, one file each."""
