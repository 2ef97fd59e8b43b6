"""Makes schema-8.db: the database of the seventh schema, brought to the eighth.

    python3 crates/store/tests/golden/make_8.py

Run once, when the schema was released. The file is not made again: what it holds is what a tenure of the
eighth schema left behind.
"""

import pathlib
import shutil
import sqlite3

here = pathlib.Path(__file__).resolve().parent
out = here / "schema-8.db"
shutil.copyfile(here / "schema-7.db", out)
db = sqlite3.connect(out, isolation_level=None)
db.execute("PRAGMA journal_mode = DELETE")
db.executescript((here / "../../src/sqlite/schema/0008.sql").read_text())
db.execute("PRAGMA user_version = 8")
db.execute("UPDATE meta SET value = '8' WHERE name = 'schema'")
db.execute("UPDATE meta SET value = '8' WHERE name = 'min_writer'")
db.execute(
    "INSERT INTO replies (kind, forge, item, job, target, comment, unsure, said, tries, created_at, done_at) "
    "VALUES ('comment', 'home', 'issue:acme/web#6', 'j-2222222222', NULL, 7, 0, 'done', 0, 3, 4)"
)
db.execute(
    "INSERT INTO duties (name, host_id, boot_id, boot_private, pid_ns, pid, start_ticks, start_shifted, renewed_at, swept_at) "
    "VALUES ('forge home', 'h', 'b', 0, 1, 7, 7, 0, 3, 4)"
)
db.execute(
    "INSERT INTO waiting_deliveries (delivery, endpoint, event, tries, next_at) VALUES (1, 'home', '{}', 1, 5)"
)
assert db.execute("PRAGMA foreign_key_check").fetchall() == []
db.execute("PRAGMA journal_mode = WAL")
db.close()
print(out, out.stat().st_size)
