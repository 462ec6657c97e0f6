"""The panels of `factory --help`, and the commands in the order in which a person meets them."""

DATA = "Your data: declare them, make tables"
LOOK = "Look at tables and follow documents"
SERVE = "Blend, serve and load"
OPERATE = "Operate"
LAKE = "Datasets and lake, also before the command"
COMPLETION = "Completion in your shell"

ORDER = (
    *("init", "check", "assets", "materialize", "work", "demo"),
    *("tables", "sample", "trace", "diff", "report", "export", "tokenizer"),
    *("blend", "serve", "loading", "batches"),
    *("doctor", "bootstrap", "ui", "clean", "relocate"),
)
