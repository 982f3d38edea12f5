//! Ends `cargo test`, before the documentation's examples, with the number of checks that were not
//! run on this machine.

fn main() {
    #[cfg(all(any(target_os = "linux", target_os = "android"), not(vdso_time_other_os)))]
    match test_support::not_run::take_count() {
        0 => {}
        count => println!("\n{count} checks were not run here. Each said why: \"not run here: ...\".\n"),
    }
}
