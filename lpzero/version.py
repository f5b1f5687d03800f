"""The version of the engine, read by the build and written into everything it saves."""

from os.path import abspath, dirname, isdir, join

VERSION = "0.2.0"

# The folder of the documentation's pages: in the package of a wheel, beside it in a clone. They are
# published nowhere yet; `make docs` builds a site of them.
_HERE = dirname(abspath(__file__))
DOCUMENTATION = join(_HERE if isdir(join(_HERE, "docs")) else dirname(_HERE), "docs")
