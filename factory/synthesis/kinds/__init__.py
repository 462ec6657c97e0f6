"""The kinds of workers that come with the Model Factory."""
