//! Tracing in this process: the list of sites, attaching, the tracers, and all of it under load.

#![cfg(feature = "enabled")]

mod attach;
mod sites;
mod storm;

use vdso_time_trace::{Link, Site, sites as all_sites};

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn links<const N: usize>() -> &'static [Link] {
    leak(Link::array::<N>())
}

/// The only site of a name.
fn site(name: &str) -> &'static Site {
    let found: Vec<_> = all_sites().iter().filter(|site| site.name() == name).collect();
    let [site] = found[..] else { panic!("{name}: {found:?}") };
    site
}
