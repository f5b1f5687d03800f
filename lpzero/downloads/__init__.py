"""Downloads released tables from their public repositories and verifies them."""
