//! How a table of verbs is read; [`super`] has the recipe for a new row.
//!
//! `Ps(ps) changes never, answers "sessions", shown 1, alias "sessions";` is the variant `Ps` with `ps::Args`,
//! which `ps::run` runs. It never changes anything, its `--json` answer has the part `sessions`, it is the
//! first in `--help` (a verb without a place is hidden there), and people may also type `sessions`. What a
//! verb's own verbs answer (`mission join`) stands in the row of that verb.

macro_rules! verbs {
    (enum $name:ident { $(
        $variant:ident($module:ident) changes $changes:path
        $(, shown $place:literal)? $(, alias $alias:literal)?;
    )* }) => {
        #[derive(Debug, clap::Subcommand)]
        pub enum $name { $(
            $(#[command(display_order = $place)])?
            $(#[command(visible_alias = $alias)])?
            #[command(hide = $crate::verbs::table::hides(&[$($place)?]))]
            $variant($module::Args),
        )* }

        impl $name {
            /// Whether it changes anything where it succeeds.
            pub fn changes(&self) -> $crate::app::Changes {
                #[allow(unused_imports)]
                use $crate::verbs::table::{always, known, never};
                match self { $(Self::$variant(args) => $changes(args).into(),)* }
            }

            pub fn run(&self, app: &App) -> Outcome {
                match self { $(Self::$variant(args) => $module::run(args, app),)* }
            }

            /// The grammar of one verb, without what only help shows.
            #[allow(dead_code, reason = "only for the verbs that are typed first")]
            pub fn grammar_of(word: &str) -> Option<clap::Command> {
                $(if word == stringify!($module) $(|| word == $alias)? {
                    let alone = clap::Command::new(stringify!($module))$(.alias($alias))?;
                    return Some(<$module::Args as clap::Args>::augment_args(alone));
                })*
                None
            }
        }
    };
    // The same by the jobs that people come for.
    (enum $name:ident { $($job:literal: $($variant:ident($module:ident) changes $changes:path, answers $part:literal
        $(, shown $place:literal)? $(, alias $alias:literal)?;)*)* }) => {
        $crate::verbs::table::verbs! { enum $name { $($(
            $variant($module) changes $changes $(, shown $place)? $(, alias $alias)?;
        )*)* } }

        /// The verbs by job: the name of each, and the parts of its answer.
        pub const JOBS: &[(&str, &[(&str, &str)])] =
            &[$(($job, &[$((stringify!($module), $part)),*])),*];
    };
}

pub(crate) use verbs;

/// For a verb that does something without one of its own verbs too: that, and whether it changes anything.
macro_rules! or_alone {
    (fn $run:ident changes $changes:ident, |$args:pat_param, $app:pat_param| $alone:expr) => {
        impl Args {
            pub fn changes(&self) -> $crate::app::Changes {
                let alone = $crate::app::Changes::$changes;
                self.act.as_ref().map_or(alone, Act::changes)
            }
        }

        pub fn $run(args: &Args, app: &App) -> Outcome {
            if let Some(act) = &args.act {
                return act.run(app);
            }
            let ($args, $app) = (args, app);
            $alone
        }
    };
}

pub(crate) use or_alone;

use crate::app::Changes;

/// Whether a verb without these places is left out of `--help`.
pub fn hides(places: &[usize]) -> bool {
    places.is_empty()
}

pub fn never<Args>(_: &Args) -> bool {
    false
}

/// It changes what the store has already; if there is none, it fails and makes none.
pub fn known<Args>(_: &Args) -> Changes {
    Changes::Known
}

pub fn always<Args>(_: &Args) -> bool {
    true
}
