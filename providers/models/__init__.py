"""Facts about models by their names, wherever they are hosted."""
