"""Facts about models by their names, which hold for every vendor that hosts them."""
