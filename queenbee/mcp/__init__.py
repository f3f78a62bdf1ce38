"""`queen mcp`: the hive as tools, resources and a prompt of the Model Context Protocol.

`server` alone needs the SDK. `tools` lists what a client can call, `workspace` finds the hive and
the name of each client, and `results` turns values and refusals into what a client gets. Nothing
is decided here: each tool calls what the command of the same name calls. ADR 0028.
"""
