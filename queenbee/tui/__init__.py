"""`queen watch`: the whole team on a screen that follows the hive, in a terminal or a browser.

`facts` reads the hive by its services, `view` turns what was read into rows of text, and the
screen shows those: it decides nothing. ADR 0031.
"""
