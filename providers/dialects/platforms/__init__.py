"""Code that the dialects of one cloud share: AWS's errors, frames and signatures, Google's errors, frames and
addresses."""
