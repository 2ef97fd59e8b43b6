-- What the fourth schema adds: how a session ended and whether a person put that away, who named it, how its
-- process was started, what it asks a person, and when a person was last seen with it.

ALTER TABLE sessions ADD COLUMN end_kind TEXT;
ALTER TABLE sessions ADD COLUMN dismissed_at INTEGER;
ALTER TABLE sessions ADD COLUMN title_by TEXT;
ALTER TABLE sessions ADD COLUMN headless INTEGER;
ALTER TABLE sessions ADD COLUMN flags TEXT;
ALTER TABLE sessions ADD COLUMN asks TEXT;
ALTER TABLE sessions ADD COLUMN attended_at INTEGER;

-- Other ends say their kind by the way of closing.
UPDATE sessions SET end_kind = 'cut_off' WHERE closed_by = 'death';

CREATE INDEX sessions_cut_off ON sessions (closed_at, id)
    WHERE end_kind = 'cut_off' AND dismissed_at IS NULL;
