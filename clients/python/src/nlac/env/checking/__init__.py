"""Plays an environment and reports what would spoil training on it."""
