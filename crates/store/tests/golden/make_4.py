"""Makes schema-4.db: the database of the third schema, brought to the fourth.

    python3 crates/store/tests/golden/make_4.py

Run once, when the schema was released. The file is not made again: what it holds is what a tenure of the
fourth schema left behind.
"""

import pathlib
import shutil
import sqlite3

here = pathlib.Path(__file__).resolve().parent
out = here / "schema-4.db"
shutil.copyfile(here / "schema-3.db", out)
db = sqlite3.connect(out, isolation_level=None)
db.execute("PRAGMA journal_mode = DELETE")
db.executescript((here / "../../src/sqlite/schema/0004.sql").read_text())
db.execute("PRAGMA user_version = 4")
db.execute("UPDATE meta SET value = '4' WHERE name = 'schema'")
db.execute("UPDATE meta SET value = '4' WHERE name = 'min_writer'")
db.execute("UPDATE sessions SET headless = 1, flags = '[\"--model\", \"m\"]', attended_at = 7")
assert db.execute("PRAGMA foreign_key_check").fetchall() == []
db.execute("PRAGMA journal_mode = WAL")
db.close()
print(out, out.stat().st_size)
