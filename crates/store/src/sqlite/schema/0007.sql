-- What the seventh schema adds: finding the runs that were cut off in a directory or in a conversation, by the boot in
-- which they ran. What such a run started may still be running.

CREATE INDEX runs_cut_off_in ON runs (dir, host_id, boot_id, created_at, id)
    WHERE outcome = 'interrupted' OR exit_code IS NULL AND outcome IN ('stopped', 'timeout', 'failed');
CREATE INDEX runs_cut_off_of ON runs (root, agent, host_id, boot_id, created_at, id)
    WHERE outcome = 'interrupted' OR exit_code IS NULL AND outcome IN ('stopped', 'timeout', 'failed');
