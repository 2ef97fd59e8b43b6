"""Makes schema-1.db: a database of the first schema with a row in every table.

    python3 crates/store/tests/golden/make_1.py

Run once, when the schema was released. The file is not made again: what it holds is what a tenure of the
first schema left behind.
"""

import pathlib
import sqlite3

here = pathlib.Path(__file__).resolve().parent
out = here / "schema-1.db"
out.unlink(missing_ok=True)
db = sqlite3.connect(out, isolation_level=None)
db.execute("PRAGMA page_size = 4096")
db.execute("PRAGMA application_id = 0x74656e75")
db.executescript((here / "../../src/sqlite/schema/0001.sql").read_text())
db.execute("PRAGMA user_version = 1")

AT = 1_700_000_000_000
ONE = "018bcfe5-6800-7000-8000-000000000001"
TWO = "018bcfe5-6801-7000-8000-000000000002"


def put(table, **row):
    names = ", ".join(row)
    marks = ", ".join("?" for _ in row)
    db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))


PROCESS = dict(host_id="m-0123456789abcdef", boot_id="boot-one", boot_private=0, pid_ns=4026531836, start_shifted=0)
LEASE = dict(lease_era="boot-one", lease_era_private=0, lease_at=600_000)

for name, value in [("schema", "1"), ("min_writer", "1"), ("needs", "0.1.0"), ("store_id", "ab" * 16)]:
    put("meta", name=name, value=value)
put("sessions", id=ONE, handle="claude-k7qd", code="k7qd", agent="claude", native_id="c1", title="a title",
    dir="/w/web", repo="acme/web", branch="main", hosted=0, life=2, pid=41, start_ticks=-1, activity="busy",
    activity_since=AT, started_at=AT, seen_at=AT + 5, revision=3, **PROCESS, **LEASE)
put("sessions", id=TWO, handle="codex-mnpq", code="mnpq", agent="codex", native_id="c2", fork_of="c1", parent_id=ONE,
    parent_life=2, twin_of=ONE, dir="/w/web", hosted=0, life=1, pid=42, start_ticks=7, started_at=AT + 1,
    seen_at=AT + 6, closed_at=AT + 9, closed_by="death", closed_why="pid 42 is gone", revision=1, **PROCESS, **LEASE)
put("lives", session=ONE, life=1, pid=40, start_ticks=1, at=AT, **PROCESS)
put("lives", session=ONE, life=2, pid=41, start_ticks=-1, at=AT + 2, **PROCESS)
put("natives", agent="claude", native_id="c1", owner=ONE, at=AT)
put("visits", agent="claude", native_id="c1", visitor=TWO, at=AT + 1)
put("claims", key="issue:acme/web#42", epoch=2)
put("holds", key="issue:acme/web#42", epoch=1, session=TWO, life=1, request="r-1", means="claim", note="mine",
    granted_at=AT, ended_at=AT + 9, ended_by="death")
put("holds", key="issue:acme/web#42", epoch=2, session=ONE, life=2, means="claim", granted_at=AT + 9,
    taken_from=None)
put("notices", id=1, recipient=ONE, kind="told", message="hear this", key="issue:acme/web#42", epoch=2, sender=TWO, at=AT)
put("events", id=7, at=AT, kind="claim.granted", session=ONE, actor=TWO, key="issue:acme/web#42", epoch=2,
    mechanism="claim", evidence="it was free", reason="because")
put("metadata", session=ONE, key="team", value="blue")
put("doubts", asker=ONE, holder=TWO, life=1)
put("tickets", id=5)
put("waiters", key="wp:1", ticket=5, session=ONE, life=2, pid=43, start_ticks=9, since=AT, **PROCESS)
put("transcripts", path="/t/c1.jsonl", session=ONE, native_id="c1", at=AT)
put("quarantine", id=1, session=TWO, path="/t/c2.jsonl", native_id="c2", since=AT, why="another's", at=AT + 1)
put("writes", path="/w/web/a.rs", session=ONE, at=AT, size=10, modified=11)
put("trees", session=ONE, root="/w/web", head="0123", branch="main", at=AT)
put("missions", id="m1", created_at=AT)
put("participants", mission="m1", session=ONE, participant="01HF7YAT00000000000000000A", role="lead", joined_at=AT,
    active_at=AT, drive="active", focus="wp:1", revision=1)
put("pointers", scope="session", name=ONE, mission="m1", at=AT)
put("mirror_failures", path="/m/x.json", session=ONE, why="no room", at=AT)

tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
empty = [name for name in tables if not db.execute(f"SELECT count(*) FROM {name}").fetchone()[0]]
assert not empty, empty
assert db.execute("PRAGMA foreign_key_check").fetchall() == []
db.execute("PRAGMA journal_mode = WAL")
db.close()
print(out, out.stat().st_size)
