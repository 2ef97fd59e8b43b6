-- What the tenth schema adds: whether a run was stopped on request or by its time limit. NULL in older rows: on request.

ALTER TABLE runs ADD COLUMN stop_cause TEXT;
