"""The version of the engine, read by the build and written into everything it saves."""

VERSION = "0.2.0"
