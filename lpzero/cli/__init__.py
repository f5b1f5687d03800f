"""The command line: one module per group of verbs, `main` puts them together."""
