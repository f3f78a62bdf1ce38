"""Team sessions: a folder with a team's tasks and roles. docs/sessions.md."""
