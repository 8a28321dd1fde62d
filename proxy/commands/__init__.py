"""What each command of `dragoman` does, one file each. Never arguments, and never what a request needs."""
