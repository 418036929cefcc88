"""Residual addition and root-mean-square normalisation of rows in one pass."""
