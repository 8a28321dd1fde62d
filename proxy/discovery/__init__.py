"""The vendors' own lists of models, fetched for the models list: what a `vendor/*` entry stands for."""
