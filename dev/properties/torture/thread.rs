//! [`Thread`]: what a program sees of the simulated machine: two CPUs, whose counters can differ,
//! and what the kernel and the CPU say about themselves.

use std::cell::Cell;
use std::rc::Rc;

use crate::engine::source::Source;
use crate::world::{MICRO, MILLI, Machine, NANO, World};

/// The kernel's `current_clocksource`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockSource {
    /// The counter: the TSC, or `arch_sys_counter`.
    Counter,
    /// `kvm-clock`: the TSC with a scale and an offset that the hypervisor keeps right.
    Kvm,
    /// A timer that is read through a system call, because the counters do not agree.
    Hpet,
}

/// The time between two updates of the vDSO's data by a kernel with `CONFIG_HZ=250`.
const KERNEL_TICK: u64 = 4_000_000;
/// How often the thread moves to the other CPU: at one call in so many, which is about once in a
/// millisecond of calls, and at one sleep in so many.
const CALLS: u64 = 20_000;
const SLEEPS: u64 = 4;
/// The time that a move takes.
const MOVE: u128 = 3 * MICRO;

pub(crate) struct Thread {
    pub(crate) world: Rc<World>,
    /// The number of the machine in its history.
    pub(crate) number: u32,
    /// The counter's rate as it was at first.
    pub(crate) hertz: u64,
    pub(crate) clock_source: Cell<ClockSource>,
    /// CPUID's promise that the counter's rate and offset never change.
    pub(crate) is_invariant: Cell<bool>,
    /// How far the second CPU's counter is ahead of the first one's, in nanoseconds.
    pub(crate) lead: Cell<i64>,
    is_on_second: Cell<bool>,
    /// The thread is preempted before its clock read of this number, for so long.
    pub(crate) preemption: Cell<(u32, u128)>,
    reads: Cell<u32>,
    /// The tick of the last unordered read.
    latest: Cell<u64>,
}

impl Thread {
    pub(crate) fn new(machine: Machine, number: u32) -> Rc<Self> {
        Rc::new(Self {
            world: Rc::new(World::new(machine, || {})),
            number,
            hertz: machine.hertz,
            clock_source: Cell::new(ClockSource::Counter),
            is_invariant: Cell::new(true),
            lead: Cell::new(0),
            is_on_second: Cell::new(false),
            preemption: Cell::new((0, 0)),
            reads: Cell::new(0),
            latest: Cell::new(0),
        })
    }

    /// Returns whether this is an x86-64 machine. The others are arm64, which state the counter's
    /// rate (`CNTFRQ`), and since version 8.6 of the architecture count at 1 GHz.
    pub(crate) fn is_x86(&self) -> bool {
        self.hertz > 1_000_000_000
    }

    /// Sleeps for so long, and as much longer as a kernel with a timer slack of 50 us lets it.
    pub(crate) fn sleep(&self, picos: u128) {
        self.world
            .pass(picos + u128::from(50 + self.world.random(10)) * MICRO);
        self.move_one_in(SLEEPS);
    }

    /// Lets another thread read the clock next, which may run on the other CPU.
    pub(crate) fn hand_over(&self) {
        self.move_one_in(2);
    }

    fn move_one_in(&self, times: u64) -> bool {
        let moves = self.lead.get() != 0 && self.world.random(times) == 0;
        if moves {
            self.is_on_second.set(!self.is_on_second.get());
        }
        moves
    }

    /// Moves the thread from time to time, and preempts it once.
    fn schedule(&self) {
        if self.move_one_in(CALLS) {
            self.world.pass(MOVE);
        }
        self.reads.set(self.reads.get() + 1);
        let (read, picos) = self.preemption.get();
        if read == self.reads.get() {
            self.world.pass(picos);
        }
    }

    /// Returns how far this CPU's counter is ahead, in nanoseconds.
    fn lead_here(&self) -> i64 {
        if self.is_on_second.get() {
            self.lead.get()
        } else {
            0
        }
    }

    /// Sets the counters so many nanoseconds ahead.
    pub(crate) fn jump(&self, nanos: i64) {
        let ticks = self.world.counter();
        self.world
            .set_counter(ticks.wrapping_add_signed(self.ticks_of(nanos)));
    }

    fn ticks_of(&self, nanos: i64) -> i64 {
        (i128::from(nanos) * i128::from(self.hertz) / 1_000_000_000) as i64
    }

    /// Returns what the vDSO makes of the kernel's clock. It reads this CPU's counter; the kernel's
    /// last update is its lower limit (`vdso_calc_delta`).
    fn by_vdso(&self, nanos: u64) -> u64 {
        if self.clock_source.get() != ClockSource::Counter {
            return nanos;
        }
        let updated = nanos - nanos % KERNEL_TICK;
        nanos.saturating_add_signed(self.lead_here()).max(updated)
    }

    /// Reads the counter. The CPU does it up to 20 ns early, but no earlier than this thread's last
    /// read.
    pub(crate) fn ticks(&self) -> u64 {
        let ticks = self.ticks_ordered();
        let early = self.world.random(1 + self.ticks_of(20) as u64);
        let since = ticks.saturating_sub(self.latest.get());
        self.latest.set(ticks - early.min(since));
        self.latest.get()
    }

    /// Reads the counter after all earlier instructions.
    pub(crate) fn ticks_ordered(&self) -> u64 {
        self.schedule();
        let ticks = self.world.ticks_ordered();
        ticks.wrapping_add_signed(self.ticks_of(self.lead_here()))
    }

    /// Reads `CLOCK_MONOTONIC`.
    pub(crate) fn monotonic(&self) -> u64 {
        self.schedule();
        let nanos = self.world.monotonic().expect("no sandbox denies it");
        self.by_vdso(nanos)
    }

    /// Reads `CLOCK_REALTIME`.
    pub(crate) fn realtime(&self) -> i64 {
        self.schedule();
        let nanos = self.world.realtime().expect("no sandbox denies it");
        let offset = self.world.wall() - self.world.kernel() as i64;
        self.by_vdso((nanos - offset) as u64) as i64 + offset
    }

    /// Reads `CLOCK_MONOTONIC_RAW`.
    pub(crate) fn raw(&self) -> i64 {
        self.schedule();
        let nanos = self.world.raw().expect("no sandbox denies it");
        self.by_vdso(nanos as u64) as i64
    }
}

/// The additional time of a read of the kernel's clock that is a system call.
pub(crate) const SYSTEM_CALL: u128 = 150 * NANO;
/// The pause of a preempted calibration.
pub(crate) const PREEMPTION: u128 = 20 * MILLI;
