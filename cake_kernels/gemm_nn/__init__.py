"""Dense matrix product whose second operand has N contiguous, bf16 in and out with f32 accumulation."""
