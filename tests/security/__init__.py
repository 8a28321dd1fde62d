"""The threats of `SECURITY.md`, each tried as an attacker would."""
