"""The rules: one file a code, in a folder a gate; `cake_verify.rule` finds them."""
