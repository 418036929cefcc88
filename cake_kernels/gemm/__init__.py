"""Dense matrix product, bf16 in and out with f32 accumulation."""
