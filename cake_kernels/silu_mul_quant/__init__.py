"""SiLU of a gate times a projection, quantised to 8-bit floats with a scale for each group of 128 columns."""
