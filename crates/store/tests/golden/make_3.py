"""Makes schema-3.db: the database of the second schema, brought to the third.

    python3 crates/store/tests/golden/make_3.py

Run once, when the schema was released. The file is not made again: what it holds is what a tenure of the
third schema left behind.
"""

import pathlib
import shutil
import sqlite3

here = pathlib.Path(__file__).resolve().parent
out = here / "schema-3.db"
shutil.copyfile(here / "schema-2.db", out)
db = sqlite3.connect(out, isolation_level=None)
db.execute("PRAGMA journal_mode = DELETE")
db.executescript((here / "../../src/sqlite/schema/0003.sql").read_text())
db.execute("PRAGMA user_version = 3")
db.execute("UPDATE meta SET value = '3' WHERE name = 'schema'")
assert db.execute("PRAGMA foreign_key_check").fetchall() == []
db.execute("PRAGMA journal_mode = WAL")
db.close()
print(out, out.stat().st_size)
