"""Makes schema-5.db: the database of the fourth schema, brought to the fifth.

    python3 crates/store/tests/golden/make_5.py

Run once, when the schema was released. The file is not made again: what it holds is what a tenure of the
fifth schema left behind.
"""

import pathlib
import shutil
import sqlite3

here = pathlib.Path(__file__).resolve().parent
out = here / "schema-5.db"
shutil.copyfile(here / "schema-4.db", out)
db = sqlite3.connect(out, isolation_level=None)
db.execute("PRAGMA journal_mode = DELETE")
db.executescript((here / "../../src/sqlite/schema/0005.sql").read_text())
db.execute("PRAGMA user_version = 5")
db.execute("UPDATE meta SET value = '5' WHERE name = 'schema'")
db.execute("UPDATE meta SET value = '5' WHERE name = 'min_writer'")
db.execute("UPDATE sessions SET daemon_pid = 9, daemon_ticks = 8, daemon_shifted = 0 WHERE pid IS NOT NULL")
assert db.execute("PRAGMA foreign_key_check").fetchall() == []
db.execute("PRAGMA journal_mode = WAL")
db.close()
print(out, out.stat().st_size)
