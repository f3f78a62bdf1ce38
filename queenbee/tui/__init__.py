"""`queen watch`: the whole team on a screen that follows the hive, in a terminal or a browser.

`view` turns what `facts` has read into rows; the screen shows those and decides nothing. ADR 0031.
"""
