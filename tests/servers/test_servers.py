"""Each server starts, answers, survives a kill with its data, and leaves nothing behind."""

from __future__ import annotations


def test_postgres(postgres_server):
    with postgres_server.connect() as connection:
        assert connection.execute("SELECT '[1,2]'::vector <-> '[1,4]'::vector").fetchone() == (2.0,)
