"""The wires that fake vendors speak, a file for each dialect."""
