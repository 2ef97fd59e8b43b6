-- What the second schema adds.

-- What a session lost, and when it was granted something last: both are asked for often, and must not cost
-- more the longer a session works.
CREATE INDEX holds_lost_key ON holds (session, key, epoch) WHERE ended_by IN ('death', 'lease', 'taken');
CREATE INDEX holds_lost_at ON holds (session, ended_at) WHERE ended_by IN ('death', 'lease', 'taken');
CREATE INDEX holds_granted ON holds (session, granted_at);
