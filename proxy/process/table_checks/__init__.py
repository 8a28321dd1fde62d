"""What a loaded table lacks or does wrong where it is to be served: credentials, limits of answers, its own address."""
