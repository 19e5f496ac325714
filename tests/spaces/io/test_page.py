"""The page about files runs, and names what there is."""

import doctest
import re
from pathlib import Path

from isthmus.spaces.io import FORMATS
from isthmus.spaces.io.asked import NAMES
from isthmus.spaces.io.names import ID_NAMES, VECTOR_NAMES

PATH = Path(__file__).parents[3] / "docs" / "files.md"
PAGE = PATH.read_text(encoding="utf-8")


def test_the_examples_run():
    ran = doctest.testfile(str(PATH), module_relative=False)
    assert (ran.failed, ran.attempted > 25) == (0, True)


def test_every_format_choice_and_name_is_there():
    cells = " ".join(re.findall(r"^\| (.+?) \|", PAGE, flags=re.MULTILINE))
    for suffix in FORMATS:
        assert f"`{suffix}`" in cells
    for name in NAMES:
        assert f"{name}=" in cells
    for name in (name for group in ID_NAMES for name in group):
        assert f"`{name}`" in PAGE
    assert {"values", "emb", "vec", "dense"} <= VECTOR_NAMES
