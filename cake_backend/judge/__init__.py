"""The judge: plans what is run, runs it in a process of its own, and decides from raw bytes what it was worth.

Imported by the worker too, so nothing is imported here.
"""
