"""`queen mcp`: the hive as tools, resources and a prompt of the Model Context Protocol.

`server` alone needs the SDK. Each tool calls what the command of its name calls. ADR 0028.
"""
