"""The product's face: MCP server, command line, store and jobs."""

__version__ = "0.1.0"
