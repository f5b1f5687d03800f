"""A run's directory, the same for every kind of run: lock, config, journal, checkpoint, result."""
