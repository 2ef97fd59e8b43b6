-- What the third schema adds.

-- A process that hosts several conversations has each of them in one session. Of two that a store may have
-- from before, the newer one keeps the conversation, and owns it.
UPDATE natives SET owner = newest.id
    FROM sessions AS owning, sessions AS newest
    WHERE owning.id = natives.owner AND newest.agent = natives.agent AND newest.native_id = natives.native_id
        AND owning.native_id = natives.native_id
        AND owning.closed_at IS NULL AND owning.hosted = 1 AND newest.closed_at IS NULL AND newest.hosted = 1
        AND newest.pid = owning.pid AND newest.start_ticks = owning.start_ticks
        AND newest.boot_id = owning.boot_id AND newest.boot_private = owning.boot_private
        AND newest.pid_ns = owning.pid_ns AND newest.host_id = owning.host_id
        AND NOT EXISTS (
            SELECT 1 FROM sessions AS later
            WHERE later.closed_at IS NULL AND later.hosted = 1 AND later.native_id = newest.native_id
                AND later.pid = newest.pid AND later.start_ticks = newest.start_ticks
                AND later.boot_id = newest.boot_id AND later.boot_private = newest.boot_private
                AND later.pid_ns = newest.pid_ns AND later.host_id = newest.host_id
                AND (later.started_at, later.id) > (newest.started_at, newest.id)
        );

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
