"""Requests of coding agents: their bodies, their cost, and their effect on concurrent requests."""
