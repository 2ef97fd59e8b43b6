"""Hold a tenure lock in Python: `with lock("nightly"): ...`

Only the standard library, and `tenure` on PATH. The lock is held by the child process `tenure lock NAME --hold`
until its stdin closes: at the end of the `with` block, and also when this process dies, however it dies.
"""

import json
import subprocess
import sys
from contextlib import contextmanager


class NotHeld(Exception):
    """The lock could not be acquired; `kind` is the reason ("held", "timed_out", "usage", ...)."""

    def __init__(self, error):
        super().__init__(error["message"])
        self.kind = error["kind"]
        self.hints = error["hints"]


@contextmanager
def lock(name, wait="0s", shared=False):
    """Hold the lock `name` for the block; wait for it at most `wait`, such as "10s" or "forever"."""
    command = ["tenure", "lock", "--hold", "--json", "--wait", wait]
    if shared:
        command.append("--shared")
    holder = subprocess.Popen(
        [*command, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with holder:  # waits for its end, after the block has closed its stdin
        word = holder.stdout.readline()  # one line once it is held; none if it cannot be acquired
        if not word:
            raise NotHeld(json.loads(holder.stderr.read().splitlines()[-1])["error"])
        try:
            yield json.loads(word)["lock"]
        finally:
            holder.stdin.close()


def main(name):
    try:
        with lock(name) as held:
            print(f"{held['name']} is held")
        print(f"{name} is free again")
    except NotHeld as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "example"))
