//! Pages of texts that commands rarely print: one sample of each, made from the types that render them.

mod dispatcher;
mod jobs;
mod rare;
mod reasons;
mod sessions;
mod writes;
