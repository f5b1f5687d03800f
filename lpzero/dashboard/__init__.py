"""The dashboard: every run below a folder, live, on loopback, without writing or locking."""
