"""Taking back what the last command of a droid wrote, by new lines."""
