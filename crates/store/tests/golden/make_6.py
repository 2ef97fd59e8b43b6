"""Makes schema-6.db: the database of the fifth schema, brought to the sixth.

    python3 crates/store/tests/golden/make_6.py

Run once, when the schema was released. The file is not made again: what it holds is what a tenure of the
sixth schema left behind.
"""

import pathlib
import shutil
import sqlite3

here = pathlib.Path(__file__).resolve().parent
out = here / "schema-6.db"
shutil.copyfile(here / "schema-5.db", out)
db = sqlite3.connect(out, isolation_level=None)
db.execute("PRAGMA journal_mode = DELETE")
db.executescript((here / "../../src/sqlite/schema/0006.sql").read_text())
db.execute("PRAGMA user_version = 6")
db.execute("UPDATE meta SET value = '6' WHERE name = 'schema'")
db.execute("UPDATE meta SET value = '6' WHERE name = 'min_writer'")
db.execute(
    "INSERT INTO conversations (item, agent, native_id, host_id, user_name, agent_home, dir, set_at, revision) "
    "VALUES ('issue:acme/web#6', 'claude', 'n-1', 'h', 'ann', '/home/ann/.claude', '/work', 1, 1)"
)
db.execute("INSERT INTO past_ids (item, agent, native_id, from_at) VALUES ('issue:acme/web#6', 'claude', 'n-1', 1)")
db.execute("INSERT INTO items (item, root, linked_at) VALUES ('pr:acme/web#9', 'issue:acme/web#6', 2)")
db.execute(
    "INSERT INTO runs (id, agent, item, root, host_id, dir, shares_dir, exclusive, started_by, created_at, fell_back, revision) "
    "VALUES ('r-2222222222', 'claude', 'issue:acme/web#6', 'issue:acme/web#6', 'h', '/work', 0, 0, 'call', 3, 0, 1)"
)
db.execute(
    "INSERT INTO parks (agent, host_id, until_at, count, why, run, at) "
    "VALUES ('claude', 'h', 9, 1, 'a usage limit', 'r-2222222222', 3)"
)
assert db.execute("PRAGMA foreign_key_check").fetchall() == []
db.execute("PRAGMA journal_mode = WAL")
db.close()
print(out, out.stat().st_size)
