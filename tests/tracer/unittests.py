"""The unit tests of the tracer, as `python -m unittest MODULE...` runs them in this folder: a script, for
tests/preloaded.py."""

import unittest

if __name__ == "__main__":
    unittest.main(module=None)
