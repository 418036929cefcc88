"""What Cake does for its users, independent of how they reach it: the tools and the command line are two faces of these."""
