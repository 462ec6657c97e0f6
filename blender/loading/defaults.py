"""Defaults of the commands that plan and load, in a module that a command line imports at once."""

MESH, MODEL, BROADCAST = "dp=1", "hidden=4096,layers=32", "tp"
