"""Makes schema-2.db: the database of the first schema, brought to the second, with a row in every new table.

    python3 crates/store/tests/golden/make_2.py

Run once, when the schema was released. The file is not made again: what it holds is what a tenure of the
second schema left behind.
"""

import pathlib
import shutil
import sqlite3

here = pathlib.Path(__file__).resolve().parent
out = here / "schema-2.db"
shutil.copyfile(here / "schema-1.db", out)
db = sqlite3.connect(out, isolation_level=None)
db.execute("PRAGMA journal_mode = DELETE")
db.executescript((here / "../../src/sqlite/schema/0002.sql").read_text())
db.execute("PRAGMA user_version = 2")
for name in ["schema", "min_writer"]:
    db.execute("UPDATE meta SET value = '2' WHERE name = ?", [name])

AT = 1_700_000_000_000
(ONE,) = db.execute("SELECT id FROM sessions WHERE handle = 'claude-k7qd'").fetchone()


def put(table, **row):
    names = ", ".join(row)
    marks = ", ".join("?" for _ in row)
    db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))


put("claims", key="path:Acme/Web:src/**", epoch=1)
put("holds", key="path:Acme/Web:src/**", epoch=1, session=ONE, life=2, means="claim", granted_at=AT + 10,
    ended_at=AT + 11, ended_by="release", home="/w/web/.git", home_mark="64769:12")
put("spellings", canonical="path:acme/web:src/**", key="path:Acme/Web:src/**")
put("model_channels", session=ONE, life=2)
db.execute("UPDATE waiters SET turn_epoch = 2")

tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
empty = [name for name in tables if not db.execute(f"SELECT count(*) FROM {name}").fetchone()[0]]
assert not empty, empty
assert db.execute("PRAGMA foreign_key_check").fetchall() == []
db.execute("PRAGMA journal_mode = WAL")
db.close()
print(out, out.stat().st_size)
