"""The panels of `factory --help`, in the order in which a person meets their commands."""

DATA = "Your data: declare them, make tables"
LOOK = "Look at tables and follow documents"
SERVE = "Blend, serve and load"
OPERATE = "Operate"
