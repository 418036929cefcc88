"""Facts that follow from a program and that every reading shares."""
