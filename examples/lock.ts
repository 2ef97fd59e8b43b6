// Hold a tenure lock in TypeScript: `await using held = await Lock.acquire("nightly")`.
//
// Only Node, and `tenure` on PATH. The lock is held by the child process `tenure lock NAME --hold` until
// its stdin closes: when it is disposed of, and also when this process dies, however it dies. Types are
// annotations only, so Node 22.6 and later runs this file as it is (--experimental-strip-types).

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";

export class NotHeld extends Error {
  kind: string;

  constructor(kind: string, message: string) {
    super(message);
    this.kind = kind;
  }
}

export class Lock {
  name: string;
  #holder: ChildProcess;

  constructor(name: string, holder: ChildProcess) {
    this.name = name;
    this.#holder = holder;
  }

  /** Takes a lock, waiting at most `wait`, such as "10s" or "forever". */
  static async acquire(name: string, wait: string = "0s"): Promise<Lock> {
    const holder = spawn("tenure", ["lock", "--hold", "--json", "--wait", wait, name], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    await once(holder, "spawn");
    const complaint = text(holder.stderr);
    // One line once it is held; none if it cannot be acquired.
    for await (const line of createInterface({ input: holder.stdout })) {
      return new Lock(JSON.parse(line).lock.name, holder);
    }
    const { error } = JSON.parse((await complaint).trim().split("\n").at(-1) ?? "{}");
    throw new NotHeld(error.kind, error.message);
  }

  /** Releases it, and returns once it is free. */
  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#holder, "exit");
    this.#holder.stdin?.end();
    await ended;
  }
}

async function main(name: string): Promise<void> {
  // With TypeScript 5.2 or Node 24, in place of try and finally: await using held = await Lock.acquire(name);
  const held = await Lock.acquire(name);
  try {
    console.log(`${held.name} is held`);
  } finally {
    await held[Symbol.asyncDispose]();
  }
  console.log(`${name} is free again`);
}

main(process.argv[2] ?? "example").catch((error: unknown) => {
  console.error(`error: ${error instanceof NotHeld ? error.message : error}`);
  process.exitCode = 1;
});
