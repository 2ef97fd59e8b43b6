"""Makes schema-10.db: the database of the ninth schema, brought to the tenth.

    python3 crates/store/tests/golden/make_10.py

Run once, when the schema was released. The file is not made again: what it holds is what a tenure of the
tenth schema left behind.
"""

import pathlib
import shutil
import sqlite3

here = pathlib.Path(__file__).resolve().parent
out = here / "schema-10.db"
shutil.copyfile(here / "schema-9.db", out)
db = sqlite3.connect(out, isolation_level=None)
db.execute("PRAGMA journal_mode = DELETE")
db.executescript((here / "../../src/sqlite/schema/0010.sql").read_text())
db.execute("UPDATE runs SET stop_cause = 'timeout'")
db.execute("PRAGMA user_version = 10")
db.execute("UPDATE meta SET value = '10' WHERE name = 'schema'")
db.execute("UPDATE meta SET value = '8' WHERE name = 'min_writer'")
assert db.execute("PRAGMA foreign_key_check").fetchall() == []
db.execute("PRAGMA journal_mode = WAL")
db.close()
print(out, out.stat().st_size)
