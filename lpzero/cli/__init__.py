"""The command line: one module per verb, which `main` imports when it is called."""
