"""Projection of a few rows: at most 16 rows of activations against a wide weight matrix."""
