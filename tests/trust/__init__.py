"""The scoreboard: figures of the gateway's reliability, each with its target, and a sabotage that makes it bad."""
