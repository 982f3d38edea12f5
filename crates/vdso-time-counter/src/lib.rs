#![doc = include_str!("../README.md")]
#![doc = include_str!("promises.md")]
#![doc = include_str!("glossary.md")]
#![no_std]
#![cfg(any(
    feature = "std",
    all(
        any(target_os = "linux", target_os = "android"),
        not(vdso_time_other_os)
    )
))]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(docsrs, doc(auto_cfg(hide(vdso_time_other_os))))]
#![cfg_attr(
    any(
        vdso_time_other_os,
        not(any(target_os = "linux", target_os = "android"))
    ),
    allow(dead_code, reason = "most of it is for Linux")
)]

#[cfg(feature = "std")]
extern crate std;

mod clocks;
mod engine;
mod global;
mod machine;
mod ticks;

pub use clocks::{CounterMonotonic, CounterRealtime, monotonic, realtime};
pub use engine::status::{Refusal, State, Statistics, Status};
pub use global::{check, forbid_system_calls, state, statistics, trust_hypervisor};
pub use ticks::Ticks;
