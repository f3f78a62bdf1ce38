"""The report of a hive: gathered as plain values, then written as a page or as Markdown."""
