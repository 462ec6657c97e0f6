"""Where the roles of a loader run. Each role is a plain class, and each message to it a method."""
