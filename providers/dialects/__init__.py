"""The wire formats that vendors speak, one folder for each."""
