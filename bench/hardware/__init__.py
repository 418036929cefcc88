"""Questions to a Hopper GPU that documents leave open: one small kernel and one child process a case, answers as JSON."""
