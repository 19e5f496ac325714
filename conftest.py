"""What every test run begins with.

Workflows are imported before any doctest module is collected: a workflow's file bears the name of
its function, and pytest, when it meets the file first, would bind the module over the function in
the package. Hypothesis has no time limit per example: no test asserts speed.
"""

from hypothesis import settings

import isthmus.workflows  # noqa: F401 - imported for its effect

settings.register_profile("isthmus", deadline=None)
settings.load_profile("isthmus")
