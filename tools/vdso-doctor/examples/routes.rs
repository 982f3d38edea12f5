//! `cargo run -p vdso-doctor --example routes`: what answers each call, and whether that stays in
//! user space.

use vdso_time::ClockId;

fn main() {
    // The vDSO's function, or the system call and the reason for it.
    println!("{}", vdso_time::routes());

    // A function of the vDSO can make the system call itself. Only this proves that it does not.
    match vdso_doctor::check(&[ClockId::REALTIME, ClockId::MONOTONIC]) {
        Ok(()) => println!("the wall clock and the monotonic clock are read in user space"),
        Err(finding) => println!("{finding}"),
    }
}
