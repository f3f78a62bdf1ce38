"""Our bytes on disk: where they are, how they are appended, and how they are read back."""
