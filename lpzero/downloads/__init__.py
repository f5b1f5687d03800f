"""Released tables from their public repositories: downloaded, verified, put in place."""
