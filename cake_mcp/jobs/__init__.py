"""Long work: child processes, their queue, their end."""
