//! Any bytes as an event of every agent: nothing panics, and an id that is taken from them is one.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tenure_agents::{ADAPTERS, EventAnswer};
use tenure_core::id::NativeId;

fuzz_target!(|event: &[u8]| {
    let said = EventAnswer {
        context: Some("context".into()),
        message: Some("message".into()),
        block: Some("block".into()),
        token: Some("token".into()),
    };
    for adapter in ADAPTERS {
        let report = adapter.read(event);
        if let Some(id) = &report.native_id {
            assert!(NativeId::parse(id.as_str()).is_ok());
        }
        assert!(!report.name.contains(char::is_control));
        assert!(report.dir.is_none_or(|dir| dir.starts_with('/')));
        assert!(adapter.answer(&report.name, &said).is_some());
    }
});
