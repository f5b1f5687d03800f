"""Training of whole tables, as runs that can be killed and resumed."""
