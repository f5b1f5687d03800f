"""The hand-made proxies, a family per module: every module here is found and declares its own."""
