"""The vendors' own lists of models, fetched for the models list: the models that a `vendor/*` entry stands for."""
