"""Stands in front of the real package, in worker processes only."""
