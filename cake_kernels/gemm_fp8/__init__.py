"""Matrix product of 8-bit floats with block scales: 1 x 128 on activations, 128 x 128 on weights."""
