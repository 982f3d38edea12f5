//! `cpu()` and `getcpu()` from the thread's rseq area.

#![allow(unsafe_code, reason = "clone(2) is called here")]

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use test_support::functions::assert_all_right;
use test_support::nix::sched::{CloneFlags, CpuSet, clone, sched_setaffinity};
use test_support::nix::unistd::gettid;
use test_support::{Cpus, PATHS, child, not_run, oracle, rseq};
use vdso_time::{Errno, Route, cpu, getcpu, routes};

/// The kernel's answer, while the thread stays on one CPU.
fn kernel() -> (u32, u32) {
    oracle::getcpu().unwrap()
}

fn cpu_and_node() -> Result<(u32, u32), Errno> {
    getcpu().map(|here| (here.cpu, here.node))
}

/// Moves this thread to each CPU, and fails unless each function says so.
fn check(cpus: &Cpus) {
    for number in cpus.numbers() {
        cpus.pin(number);
        for _ in 0..1000 {
            assert_eq!((cpu(), cpu_and_node()), (Ok(number as u32), Ok(kernel())));
        }
    }
}

#[test]
fn a_registered_rseq_area_answers() {
    child::forked(|| {
        // AT_RSEQ_FEATURE_SIZE. The node's number ends at byte 24.
        let has_node = oracle::auxval(27) >= 24;
        let routes = routes();
        let is_native = vdso_time::arch::NATIVE.is_some();
        assert_eq!(routes.cpu == Route::Rseq, rseq::is_registered() && is_native, "{routes}");
        assert_eq!(routes.getcpu == Route::Rseq, has_node && rseq::is_registered() && is_native, "{routes}");
    });
}

/// The child of a fork keeps the area, and so does its thread. A thread without an area asks the
/// vDSO or the kernel.
#[test]
fn a_thread_gets_its_own_cpu_after_a_move_after_a_fork_and_without_an_area() {
    let Some(cpus) = Cpus::allowed() else { return };
    child::forked(|| {
        check(&cpus);
        child::forked(|| {
            check(&cpus);
            thread::scope(|scope| scope.spawn(|| check(&cpus)).join()).unwrap();
            rseq::unregister();
            check(&cpus);
            assert_all_right(&PATHS[0]);
        });
    });
}

#[test]
fn a_thread_that_others_move_gets_a_cpu_and_the_node_of_that_cpu() {
    let Some(cpus) = Cpus::allowed() else { return };
    child::forked(|| {
        let node_of = |number: &usize| {
            cpus.pin(*number);
            kernel()
        };
        let nodes: Vec<(u32, u32)> = cpus.numbers().iter().map(node_of).collect();
        cpus.release();
        let (sender, receiver) = mpsc::channel();
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                sender.send(gettid()).unwrap();
                while !is_done.load(Ordering::Relaxed) {
                    let here = cpu_and_node().unwrap();
                    assert!(nodes.contains(&here), "CPU {} is not in node {}", here.0, here.1);
                    let here = cpu().unwrap();
                    assert!(nodes.iter().any(|(number, _)| here == *number), "CPU {here}");
                }
            });
            let thread = receiver.recv().unwrap();
            for (number, _) in nodes.iter().cycle().take(2000) {
                let mut one = CpuSet::new();
                one.set(*number as usize).and_then(|()| sched_setaffinity(thread, &one)).unwrap();
            }
            is_done.store(true, Ordering::Relaxed);
        });
    });
}

/// As vfork(2) makes it. The kernel does not write its CPU, because the area is the parent's.
#[test]
fn a_child_that_shares_the_memory_gets_the_parents_cpu() {
    let Some(cpus) = Cpus::allowed() else { return };
    let (Some(&first), Some(&last)) = (cpus.numbers().first(), cpus.numbers().last()) else { return };
    child::forked(|| {
        cpus.pin(first);
        let expected = [routes().cpu, routes().getcpu]
            .map(|route| if route == Route::Rseq { first } else { last } as u32);
        let mut stack = vec![0; 256 * 1024];
        let child = || {
            cpus.pin(last);
            child::leave(([cpu(), getcpu().map(|here| here.cpu)] != expected.map(Ok)).into())
        };
        let flags = CloneFlags::CLONE_VM | CloneFlags::CLONE_VFORK;
        // SAFETY: this process waits until the other has ended, and the stack outlives it.
        let pid = unsafe { clone(Box::new(child), &mut stack, flags, Some(libc::SIGCHLD)) }.unwrap();
        assert_eq!(child::wait(pid, child::LIMIT), child::WELL);
    });
}

#[test]
fn without_registration_by_glibc_the_answers_are_right() {
    const TEST: &str = "rseq::a_thread_gets_its_own_cpu_after_a_move_after_a_fork_and_without_an_area";
    if !rseq::is_registered() || !child::runs_alone(TEST) {
        return not_run("there is no rseq area, or this program cannot run again");
    }
    let routes = Command::new(child::this_program())
        .args(["--exact", "rseq::a_registered_rseq_area_answers", TEST, "--nocapture"])
        .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
        .output()
        .unwrap();
    assert!(routes.status.success(), "{}", String::from_utf8_lossy(&routes.stderr));
}
