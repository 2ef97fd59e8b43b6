-- What the third schema adds.

-- A process that hosts several conversations has each of them in one session. Of two that a store may have
-- from before, the newer one keeps the conversation.
UPDATE sessions AS one SET native_id = NULL
    WHERE closed_at IS NULL AND hosted = 1 AND native_id IS NOT NULL AND EXISTS (
        SELECT 1 FROM sessions AS other
        WHERE other.closed_at IS NULL AND other.hosted = 1 AND other.native_id = one.native_id
            AND other.pid = one.pid AND other.start_ticks = one.start_ticks AND other.boot_id = one.boot_id
            AND other.boot_private = one.boot_private AND other.pid_ns = one.pid_ns
            AND other.host_id = one.host_id
            AND (other.started_at, other.id) > (one.started_at, one.id)
    );

CREATE UNIQUE INDEX sessions_open_hosted
    ON sessions (pid, start_ticks, boot_id, boot_private, pid_ns, host_id, native_id)
    WHERE closed_at IS NULL AND hosted = 1 AND native_id IS NOT NULL;
