"""What Spark's workers do with the records of synthesis."""
