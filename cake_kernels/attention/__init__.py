"""Scaled dot-product attention, forward."""
