"""`queen watch --web`: the same in a browser, as a page that follows the hive. ADR 0031."""
