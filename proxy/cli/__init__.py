"""The commands of `dragoman`, one file each; their arguments are in `proxy.cli.arguments`."""
