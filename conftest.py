"""Import the workflows before any doctest module is collected.

A workflow's file bears the name of its function. Pytest, when it meets the file first, would bind
the module over the function in the package.
"""

import isthmus.workflows  # noqa: F401 - imported for its effect
