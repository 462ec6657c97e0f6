"""The roles of MegaScale-Data, section 3, as plain classes: what each does, and not where it runs.

    client -> DataConstructor   the rows of a bucket, cut for each of its ranks       `constructor`
              -> SourceLoader   the rows of its sources in a bucket                   `source_loader`
                 -> Planner     which rows those are, a pure function of the step     `planner`

None of them holds a state that a spec and an offset do not give back.
"""
