"""Side-by-side benchmarks: Cake's kernels and their peers, timed in one process by one method.

PyTorch is used here and nowhere else in the project. What runs on a GPU machine imports neither pydantic nor the server.
"""
