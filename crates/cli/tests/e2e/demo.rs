//! Written elsewhere.
