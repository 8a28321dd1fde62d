"""The security programme's promises, each held by what an attacker would try."""
