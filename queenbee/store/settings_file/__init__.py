"""`queen.toml` as a text that people and programs change."""
