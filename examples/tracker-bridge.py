#!/usr/bin/env python3
"""Lets a tracker follow what agents do: who works on an item, what is done, and whose agent died.

    tenure watch --on claimed,done,died --exec 'examples/tracker-bridge.py tracker'

`tenure watch` starts it once per event, with the event as JSON on stdin. The argument is the command line of the
tracker, which is called as

    tracker assign ITEM SESSION     a session claimed the item
    tracker close ITEM              it is done
    tracker unassign ITEM REASON    the session that held it died; the item is free

Only claims of items (`issue:…`, `wp:…`) concern a tracker, and each call says the whole state of the item, so one that
is repeated changes nothing.
"""

import json
import subprocess
import sys

ITEMS = ("issue:", "wp:")


def calls(event):
    """What the tracker is told about an event."""
    session = (event.get("session") or {}).get("handle", "")
    key = event.get("key", "")
    if event["event"] == "claimed":
        yield key, ["assign", key, session]
    elif event["event"] == "done":
        yield key, ["close", key]
    elif event["event"] == "died":
        for held in event.get("held", []):
            yield held["key"], ["unassign", held["key"], f"{session} died"]


def main():
    tracker = sys.argv[1:]
    if not tracker:
        sys.exit("usage: tracker-bridge.py TRACKER [ARGUMENT...]")
    for key, words in calls(json.load(sys.stdin)):
        if key.startswith(ITEMS):
            subprocess.run([*tracker, *words], check=True)


if __name__ == "__main__":
    main()
