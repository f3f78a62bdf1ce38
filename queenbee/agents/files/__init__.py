"""Editing the files of agents: each part can be added, checked, and taken out again."""
