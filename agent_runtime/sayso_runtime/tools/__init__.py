"""The tools an agent may call: MCP servers, Python functions, and how their calls can end."""
