"""Analyses of a program, computed once and shared by rules."""
