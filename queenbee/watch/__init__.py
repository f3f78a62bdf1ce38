"""What `queen watch` shows, in a terminal and in a browser: read by `facts`, made into rows by
`view`. ADR 0031.
"""
