-- What the second schema adds.

-- A waiter's turn belongs to the key's epoch; without an end it was passed over by its own word.
ALTER TABLE waiters ADD COLUMN turn_epoch INTEGER;
