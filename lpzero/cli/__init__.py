"""The command line: verbs as commands, what they show while they work, and what they print."""
