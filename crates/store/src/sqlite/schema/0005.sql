-- What the fifth schema adds: the daemon that runs a session's conversation while its process is the window to
-- it. It is on the machine, in the boot and in the pid namespace of that process.

ALTER TABLE sessions ADD COLUMN daemon_pid INTEGER;
ALTER TABLE sessions ADD COLUMN daemon_ticks INTEGER;
ALTER TABLE sessions ADD COLUMN daemon_shifted INTEGER;

CREATE INDEX sessions_open_daemon ON sessions (daemon_pid, boot_id, pid_ns, host_id)
    WHERE closed_at IS NULL AND daemon_pid IS NOT NULL;

-- Until now a conversation of Codex that a daemon runs was bound to the daemon itself. It still is, until its
-- window is known.
UPDATE sessions SET daemon_pid = pid, daemon_ticks = start_ticks, daemon_shifted = start_shifted
    WHERE closed_at IS NULL AND agent = 'codex' AND hosted = 1 AND pid IS NOT NULL;
