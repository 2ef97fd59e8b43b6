//! Writes the part of the recording store that only passes calls on: an impl of every port in `core/src/store` for
//! `RecordingTx`.
//!
//! A method `m` calls `before_m` first if `recording/checks.rs` has it, with those of its arguments that `before_m`
//! names. `instead_of_m` takes the place of the call. A method that writes must be checked, or be in one of the lists
//! below; otherwise the build fails. A method writes if it returns nothing, or if its name begins like a write.

#![allow(
    clippy::disallowed_methods,
    reason = "a build script reads files and the environment"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use quote::ToTokens;
use syn::{FnArg, ImplItem, Item, Pat, ReturnType, Signature, TraitItem, UseTree};

const PORTS: &str = "../core/src/store";
const CHECKS: &str = "src/recording/checks.rs";

/// Writes that need no lock.
const NO_LOCK: &[&str] = &[
    "add_doubt",
    "add_job_event",
    "add_notice",
    "append_event",
    "clear_mirror_failure",
    "forget_deliveries",
    "forget_events",
    "forget_jobs",
    "forget_keepers",
    "forget_replies",
    "insert_delivery",
    "insert_reply",
    "insert_token",
    "insert_undecided",
    "mark_delivered",
    "note_model_channel",
    "remove_token",
    "remove_undecided",
    "set_duty",
    "set_mirror_failure",
    "set_pointer",
    "take_doubts",
    "update_delivery",
    "update_reply",
    "update_undecided",
];

/// Writes that only their own session decides by; a heartbeat may do them.
const BEATS: &[&str] = &["forget_writes", "note_write", "set_tree", "stamp_write"];

/// How the name of a method that writes begins. One that returns nothing writes, whatever its name.
const WRITES: &[&str] = &[
    "add",
    "append",
    "carry",
    "clear",
    "delete",
    "end",
    "forget",
    "insert",
    "join",
    "leave",
    "lock",
    "make",
    "mark",
    "move",
    "note",
    "put",
    "quarantine",
    "raise",
    "record",
    "remove",
    "rename",
    "renew",
    "replace",
    "set",
    "stamp",
    "store",
    "take",
    "touch",
    "update",
    "watch",
    "write",
];

/// What `recording/checks.rs` has, by name.
type Checks = BTreeMap<String, Signature>;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={CHECKS}");
    println!("cargo:rerun-if-changed={PORTS}");
    let mut checks = checks();
    let mut known: Vec<&str> = [NO_LOCK, BEATS].concat();
    let mut text = String::new();
    let mut files: Vec<_> = std::fs::read_dir(PORTS)
        .expect("the ports")
        .map(|entry| entry.expect("a port").path())
        .collect();
    files.sort();
    for file in files {
        text += &module(&file, &mut checks, &mut known);
    }
    let unused: Vec<_> = checks.into_keys().collect();
    assert!(unused.is_empty(), "{CHECKS}: no port has {unused:?}");
    assert!(known.is_empty(), "build.rs: no port has {known:?}");
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&out).join("ports.rs"), text).expect("the output directory");
}

fn parsed(file: &Path) -> syn::File {
    let text = std::fs::read_to_string(file).expect("a source file");
    syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn checks() -> Checks {
    let methods = parsed(Path::new(CHECKS)).items.into_iter();
    let methods = methods.filter_map(|item| match item {
        Item::Impl(own) => Some(own.items),
        _ => None,
    });
    let signatures = methods.flatten().filter_map(|item| match item {
        ImplItem::Fn(method) => Some(method.sig),
        _ => None,
    });
    let named = signatures.map(|signature| (signature.ident.to_string(), signature));
    let is_called = |name: &str| {
        ["before_", "instead_of_"]
            .iter()
            .any(|part| name.starts_with(part))
    };
    named.filter(|(name, _)| is_called(name)).collect()
}

/// The impls of the ports of a file, in a module of their own with what the file uses.
fn module(file: &Path, checks: &mut Checks, known: &mut Vec<&str>) -> String {
    let name = file.file_stem().expect("a name").to_string_lossy();
    let (mut uses, mut impls) = (String::new(), String::new());
    for item in parsed(file).items {
        match item {
            Item::Use(used) => {
                let tree = from_here(used.tree).into_token_stream();
                writeln!(uses, "    use {tree};").expect("a string");
            }
            Item::Trait(port) if port.ident.to_string().ends_with("Rows") => {
                let methods = port.items.iter().filter_map(|item| match item {
                    TraitItem::Fn(method) if method.default.is_none() => Some(&method.sig),
                    _ => None,
                });
                let methods: String = methods.map(|sig| passed_on(sig, checks, known)).collect();
                let port = port.ident;
                write!(
                    impls,
                    "    impl {port} for RecordingTx<'_> {{\n{methods}    }}\n"
                )
                .expect("a string");
            }
            _ => {}
        }
    }
    if impls.is_empty() {
        return impls;
    }
    format!(
        "#[allow(unused_imports)]\nmod {name} {{\n    use tenure_core::store::*;\n    use crate::recording::RecordingTx;\n\
         {uses}{impls}}}\n"
    )
}

/// A `use` of core, as another crate writes it.
fn from_here(tree: UseTree) -> UseTree {
    let UseTree::Path(mut path) = tree else {
        return tree;
    };
    let first = path.ident.to_string();
    if first == "crate" {
        path.ident = quote::format_ident!("tenure_core");
    } else if first == "super" {
        let inner = path.tree;
        return syn::parse_quote!(tenure_core::store::#inner);
    }
    UseTree::Path(path)
}

fn passed_on(signature: &Signature, checks: &mut Checks, known: &mut Vec<&str>) -> String {
    let name = signature.ident.to_string();
    let call = |target: &str, of: &Signature| format!("{target}({})", arguments(of).join(", "));
    let instead = checks.remove(&format!("instead_of_{name}"));
    let before = checks.remove(&format!("before_{name}"));
    let listed = known.iter().position(|other| *other == name);
    let check = match (&before, listed) {
        (Some(_), Some(_)) => panic!("{name} is in {CHECKS} and in a list of build.rs"),
        (Some(before), None) => {
            let may_fail = matches!(before.output, ReturnType::Type(..));
            let end = if may_fail { "?;" } else { ";" };
            call(&format!("self.before_{name}"), before) + end
        }
        (None, Some(at)) => {
            known.remove(at);
            let how = if BEATS.contains(&&*name) {
                "beats"
            } else {
                "writes"
            };
            format!("self.{how}({name:?});")
        }
        (None, None) => {
            assert!(
                instead.is_some() || !writes(signature),
                "{name} writes and is not checked: add before_{name} to testkit/{CHECKS}, which names the locks that it \
                 needs, or add it to NO_LOCK in testkit/build.rs"
            );
            String::new()
        }
    };
    let answer = match &instead {
        Some(instead) => call(&format!("self.instead_of_{name}"), instead),
        None => call(&format!("self.tx.{name}"), signature),
    };
    let signature = signature.to_token_stream();
    format!("        {signature} {{ {check} {answer} }}\n")
}

fn writes(signature: &Signature) -> bool {
    let output = signature.output.to_token_stream().to_string();
    let name = signature.ident.to_string();
    let verb = name.split('_').next().unwrap_or_default();
    output.replace(' ', "").starts_with("->Result<(),") || WRITES.contains(&verb)
}

/// The names of the arguments, without `self`.
fn arguments(signature: &Signature) -> Vec<String> {
    let named = signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) => Some(&*typed.pat),
        FnArg::Receiver(_) => None,
    });
    named
        .map(|pattern| match pattern {
            Pat::Ident(name) => name.ident.to_string(),
            other => panic!("an argument is {}", other.to_token_stream()),
        })
        .collect()
}
