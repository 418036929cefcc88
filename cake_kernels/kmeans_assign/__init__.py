"""The assignment step of k-means: nearest centroid of every point."""
