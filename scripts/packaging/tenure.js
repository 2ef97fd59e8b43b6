#!/usr/bin/env node
// Runs the tenure of this machine's platform package. `tenure install` writes the path of that program into the hooks,
// so an agent's hooks never start node.
"use strict";

const { spawn } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

const INTERNAL = 70;

function fail(...lines) {
  for (const line of lines) console.error(line);
  process.exit(INTERNAL);
}

function locate() {
  const name = `tenure-${process.platform}-${process.arch}`;
  try {
    return path.join(path.dirname(require.resolve(`${name}/package.json`)), "bin", "tenure");
  } catch {
    return fail(
      `error: the package ${name} is not installed`,
      "hint: there is one for Linux on x64 and arm64. If this is such a machine, install tenure without --omit=optional",
    );
  }
}

// Node versions before 22.15 cannot be replaced by another program. Ctrl-C and Ctrl-\ go to every process of a terminal;
// other signals are passed on.
function runBelow(program, words) {
  const child = spawn(program, words, { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGQUIT"]) process.on(signal, () => {});
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => fail(`error: cannot start ${program}: ${error.message}`));
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    // Where the signal does not end this process (the first one of a container), the exit code tells of it.
    process.exitCode = 128 + os.constants.signals[signal];
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

const program = locate();
const words = process.argv.slice(2);
try {
  // A program that cannot be started ends node abruptly in execve, so that is asked before.
  fs.accessSync(program, fs.constants.X_OK);
} catch (error) {
  fail(`error: cannot start ${program}: ${error.message}`);
}
try {
  if (process.execve) process.execve(program, [program, ...words], process.env);
} catch {
  // Node refuses it in a worker or where the platform has none: then the program runs below.
}
runBelow(program, words);
