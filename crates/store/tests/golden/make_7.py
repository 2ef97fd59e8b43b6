"""Makes schema-7.db: the database of the sixth schema, brought to the seventh.

    python3 crates/store/tests/golden/make_7.py

Run once, when the schema was released. The file is not made again: what it holds is what a tenure of the
seventh schema left behind.
"""

import pathlib
import shutil
import sqlite3

here = pathlib.Path(__file__).resolve().parent
out = here / "schema-7.db"
shutil.copyfile(here / "schema-6.db", out)
db = sqlite3.connect(out, isolation_level=None)
db.execute("PRAGMA journal_mode = DELETE")
db.executescript((here / "../../src/sqlite/schema/0007.sql").read_text())
db.execute("PRAGMA user_version = 7")
db.execute("UPDATE meta SET value = '7' WHERE name = 'schema'")
db.execute("UPDATE meta SET value = '7' WHERE name = 'min_writer'")
db.execute(
    "INSERT INTO jobs (id, agent, item, root, rule, trust, repo, spec, state, attempt, failures, run, created_at, "
    "ended_at, outcome, why, revision) VALUES ('j-2222222222', 'claude', 'issue:acme/web#6', 'issue:acme/web#6', "
    "'fix', 'trusted', 'acme/web', '{\"ask\":{\"text\":\"do it\"},\"workdir\":{\"dir\":\"/work\"}}', 'ended', 1, 0, "
    "'r-2222222222', 3, 4, 'done', 'so', 4)"
)
db.execute(
    "INSERT INTO job_events (job, delivery, at, summary, data) "
    "VALUES ('j-2222222222', 1, 3, 'issue.opened by alice', '{}')"
)
db.execute("INSERT INTO breakers (item, runs, person_at, told_at) VALUES ('issue:acme/web#6', 1, 3, 4)")
db.execute(
    "INSERT INTO deliveries (endpoint, delivery_id, content_key, received_at, event, repo, item, author, verdict, rule, "
    "why, job) VALUES ('home', 'd-1', 'c', 3, 'issue.opened', 'acme/web', 'issue:acme/web#6', 'alice', 'queued', 'fix', "
    "'rule fix matches', 'j-2222222222')"
)
db.execute("INSERT INTO delivery_bodies (delivery, size, body) VALUES (1, 2, X'7B7D')")
assert db.execute("PRAGMA foreign_key_check").fetchall() == []
db.execute("PRAGMA journal_mode = WAL")
db.close()
print(out, out.stat().st_size)
