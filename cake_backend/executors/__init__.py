"""Where work runs: child processes under a time limit, and the lease that gives one process a GPU to itself."""
