-- What the ninth schema adds: how the jobs of one repository are found that wait, and replies that can be forgotten.

-- By when they may be taken: zero for those that wait for no time.
CREATE INDEX jobs_waiting_repo ON jobs (coalesce(repo, ''), coalesce(parked_until, not_before, 0), created_at, id)
    WHERE state = 'queued' OR state = 'parked' AND parked_until IS NOT NULL;

CREATE INDEX replies_done ON replies (done_at) WHERE done_at IS NOT NULL;
