"""The loop, end to end, through a real MCP client over stdio: `python -m cake_mcp.demo`, or `make demo`."""
