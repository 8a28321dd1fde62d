"""What the tests of limits share: whoever counts with a clock of its own, and processes that are simulated."""
