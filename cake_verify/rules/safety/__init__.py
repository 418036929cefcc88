"""Rules of the safety gate, one code a file."""
