//! [`Native`]: this machine as a [`Source`].

use super::detection;
use super::sample::Source;
use super::status::Status;
use crate::linux::calls::{clock_gettime, cpu};
use crate::linux::{native, routes};
use crate::types::ClockId;

/// This machine's counter and kernel.
pub(super) struct Native;

impl Source for Native {
    #[inline]
    fn ticks(&self) -> u64 {
        native::counter::ticks()
    }

    #[inline]
    fn ticks_ordered(&self) -> u64 {
        native::counter::ticks_ordered()
    }

    fn monotonic(&self) -> Option<u64> {
        Some(clock_gettime(ClockId::MONOTONIC).ok()?.ktime() as u64)
    }

    fn realtime(&self) -> Option<i64> {
        Some(clock_gettime(ClockId::REALTIME).ok()?.ktime())
    }

    fn cpu(&self) -> Option<u32> {
        if routes::are_in_user_space().1 { cpu().ok() } else { None }
    }

    fn detect(&self) -> Result<(), Status> {
        detection::detect()
    }

    fn stated_frequency(&self) -> Option<u64> {
        native::counter::stated_frequency()
    }
}
