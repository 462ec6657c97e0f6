"""The Spark of a lake: its session, jars, archive of classes, scratch and worker daemon."""
