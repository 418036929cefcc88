"""Root-mean-square normalisation of rows."""
