//! The least that a Rust program costs.

fn main() {}
