"""What the jobs that copy rows share: which rows a URL leads to, and which of their vectors."""

from __future__ import annotations

import pytest

from isthmus.workflows._copying import place_of_store, which_store

URL = "postgresql://db.example/sales?collection=docs"


@pytest.mark.parametrize(
    "more", ["&timeout=3", "&ef_search=200", "&index=none", "&sslmode=require"]
)
def test_how_a_store_is_opened_makes_no_other_of_it(more):
    assert place_of_store(URL + more) == place_of_store(URL)
    assert which_store(URL + more) == which_store(URL)


def test_a_schema_of_its_own_has_rows_of_its_own():
    one, other = f"{URL}&schema=a", f"{URL}&schema=b&vector=new"
    assert place_of_store(one)[0] != place_of_store(other)[0]
    assert which_store(one) != which_store(other)


def test_a_column_is_told_apart_where_a_job_is_and_not_where_rows_could_be_lost():
    assert which_store(f"{URL}&column=a") != which_store(f"{URL}&column=b")
    assert place_of_store(f"{URL}&column=a") == place_of_store(f"{URL}&column=b")
    assert place_of_store(f"{URL}&vector=a") != place_of_store(URL)


def test_what_is_no_url_is_itself_and_nowhere():
    assert place_of_store("rows.parquet") is None
    assert which_store("rows.parquet") == "rows.parquet"
