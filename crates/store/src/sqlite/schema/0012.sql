-- What the twelfth schema adds: the host of a conversation's repository, because two hosts can have the same name.

ALTER TABLE conversations ADD COLUMN repo_host TEXT;
