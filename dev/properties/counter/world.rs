//! A simulated machine: a counter, kernel clocks that NTP, suspends and programs change, and reads
//! that take time and are interrupted.

use std::cell::Cell;
use std::ops::Add;
use std::rc::Rc;

use proptest::prelude::*;
use proptest::sample::select;
use vdso_time::__private::compare;

use crate::engine::source::{Keeper, Source};
use crate::engine::status::Unavailable;

/// Units of simulated time, in picoseconds.
pub(crate) const NANO: u128 = 1_000;
pub(crate) const MICRO: u128 = 1_000 * NANO;
pub(crate) const MILLI: u128 = 1_000 * MICRO;
pub(crate) const SECOND: u128 = 1_000 * MILLI;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Machine {
    pub(crate) hertz: u64,
    /// The counter's first value.
    pub(crate) ticks: u64,
    pub(crate) stated_hertz: Option<u64>,
    /// Interrupts per million calls. They take microseconds, and some of them much longer.
    pub(crate) interrupts: u32,
    /// Whether other readers run during interrupts.
    pub(crate) is_shared: bool,
    pub(crate) seed: u64,
}

impl Machine {
    /// Returns the machine with a counter of this rate, which it states if it stated one before.
    pub(crate) fn with_rate(self, hertz: u64) -> Self {
        Self {
            hertz,
            stated_hertz: self.stated_hertz.map(|_| hertz),
            ..self
        }
    }

    /// Returns the machine with at least this rate, so that a tick is short compared with a cost.
    pub(crate) fn at_least(self, hertz: u64) -> Self {
        self.with_rate(self.hertz.max(hertz))
    }
}

/// Machines with counters from 1 MHz to 64 GHz.
pub(crate) fn machines() -> impl Strategy<Value = Machine> {
    const USUAL: &[u64] = &[
        1_000_000,
        19_200_000,
        24_000_000,
        1_000_000_000,
        2_100_000_000,
        3_000_000_000,
        64_000_000_000,
    ];
    let any_hertz = (6.0..10.8_f64).prop_map(|digits| 10_f64.powf(digits) as u64);
    let ticks = prop_oneof![
        Just(0),
        any::<u64>(),
        (0..100_000_000_u64).prop_map(|left| u64::MAX - left)
    ];
    let interrupts = select(&[0, 300, 3_000, 30_000][..]);
    (
        prop_oneof![any_hertz, select(USUAL)],
        ticks,
        any::<[bool; 2]>(),
        interrupts,
        any::<u64>(),
    )
        .prop_map(|(hertz, ticks, [is_stated, is_shared], interrupts, seed)| {
            let stated_hertz = is_stated.then_some(hertz);
            Machine {
                hertz,
                ticks,
                stated_hertz,
                interrupts,
                is_shared,
                seed,
            }
        })
}

/// Machines of at least this rate without interrupts, and so without other readers.
pub(crate) fn quiet_machines(hertz: u64) -> impl Strategy<Value = Machine> {
    machines().prop_map(move |machine| Machine {
        interrupts: 0,
        is_shared: false,
        ..machine.at_least(hertz)
    })
}

/// A running machine.
#[derive(Default)]
pub(crate) struct World {
    now: Cell<u128>,
    machine: Cell<Machine>,
    /// When the counter was last set, and its value then.
    counted: Cell<(u128, u64)>,
    /// When the kernel's rate last changed, and its clock then, in picoseconds.
    kept: Cell<(u128, u128)>,
    /// `CLOCK_MONOTONIC_RAW` minus the time, in picoseconds.
    raw: Cell<i128>,
    /// How far the counter of this CPU, and the kernel's clocks on it, are ahead, in picoseconds.
    pub(crate) counter_lead: Cell<u128>,
    pub(crate) clock_lead: Cell<u128>,
    /// The kernel's lead per second, in nanoseconds.
    ppb: Cell<i64>,
    /// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`.
    offset: Cell<i64>,
    /// Why the counter is unavailable, according to the kernel.
    pub(crate) unavailable: Cell<Option<Unavailable>>,
    /// Whether a sandbox denies the clocks.
    pub(crate) is_denied: Cell<bool>,
    /// Whether a sandbox of this thread denies `CLOCK_MONOTONIC_RAW`.
    pub(crate) is_raw_denied: Cell<bool>,
    /// The time that the vDSO adds to a clock read while it has to make a system call, or its read
    /// of the counter is trapped.
    pub(crate) syscall: Cell<u128>,
    /// The time that a system call adds to a clock read.
    pub(crate) entry: Cell<u128>,
    /// The clock source is a scale and an offset that the hypervisor writes.
    pub(crate) is_paravirtual: Cell<bool>,
    /// Whether the CPU lacks the bit of an invariant counter.
    pub(crate) is_variable: Cell<bool>,
    /// The unit of the kernel's clocks in nanoseconds, if it is not 1.
    pub(crate) unit: Cell<u64>,
    /// The reader is preempted in the kernel's read of this number, for so long. Then others read.
    pub(crate) preemption: Cell<(u32, u128)>,
    /// The kernel's clock at the last read of the counter.
    pub(crate) read_at: Cell<u64>,
    /// The number of the kernel's answers.
    pub(crate) kernel_reads: Cell<u32>,
    /// How often the kernel was asked for its clock source.
    pub(crate) detections: Cell<u32>,
    random: Cell<u64>,
    /// Reads the clock during interrupts.
    intruder: Option<Box<dyn Fn()>>,
    depth: Cell<u8>,
}

fn add<T: Copy + Add<Output = T>>(cell: &Cell<T>, more: T) {
    cell.set(cell.get() + more);
}

impl World {
    pub(crate) fn new(machine: Machine, intruder: impl Fn() + 'static) -> Self {
        Self {
            machine: Cell::new(machine),
            counted: Cell::new((0, machine.ticks)),
            kept: Cell::new((0, 5_000 * SECOND)),
            // NTP has made `CLOCK_MONOTONIC` 3 s longer since the machine was started.
            raw: Cell::new(-3 * SECOND as i128),
            offset: Cell::new(1_700_000_000_000_000_000),
            entry: Cell::new(100 * NANO),
            unit: Cell::new(1),
            random: Cell::new(machine.seed),
            intruder: machine.is_shared.then(|| Box::new(intruder) as _),
            ..Self::default()
        }
    }

    /// Returns a random number below this one (splitmix64).
    pub(crate) fn random(&self, below: u64) -> u64 {
        self.random
            .set(self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut x = self.random.get();
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % below
    }

    /// Returns the nanoseconds since the machine was started.
    pub(crate) fn elapsed(&self) -> u128 {
        self.now.get() / NANO
    }

    /// Returns the counter's rate.
    pub(crate) fn hertz(&self) -> u64 {
        self.machine.get().hertz
    }

    pub(crate) fn pass(&self, picos: u128) {
        add(&self.now, picos);
    }

    /// Returns what `look` will return then. It must not change anything.
    pub(crate) fn foresee<T>(&self, picos: u128, look: impl Fn() -> T) -> T {
        let now = self.now.get();
        let machine = self.machine.get();
        self.machine.set(Machine {
            interrupts: 0,
            ..machine
        });
        self.pass(picos);
        let seen = look();
        self.machine.set(machine);
        self.now.set(now);
        seen
    }

    pub(crate) fn counter(&self) -> u64 {
        let (since, ticks) = self.counted.get();
        let passed = self.now.get() + self.counter_lead.get() - since;
        let passed = passed * u128::from(self.machine.get().hertz) / SECOND;
        ticks.wrapping_add(passed as u64)
    }

    pub(crate) fn set_counter(&self, ticks: u64) {
        self.counted.set((self.now.get(), ticks));
    }

    fn kernel_picos(&self) -> u128 {
        let (since, picos) = self.kept.get();
        let passed = self.now.get() + self.clock_lead.get() - since;
        picos
            + passed
                .saturating_add_signed(passed as i128 * i128::from(self.ppb.get()) / 1_000_000_000)
    }

    fn set_kernel_picos(&self, picos: u128) {
        self.kept.set((self.now.get(), picos));
    }

    /// Returns `CLOCK_MONOTONIC`.
    pub(crate) fn kernel(&self) -> u64 {
        let nanos = (self.kernel_picos() / NANO) as u64;
        nanos - nanos % self.unit.get()
    }

    /// Returns `CLOCK_REALTIME`.
    pub(crate) fn wall(&self) -> i64 {
        self.kernel() as i64 + self.offset.get()
    }

    /// Changes the rate, as NTP does.
    pub(crate) fn set_slew(&self, ppb: i64) {
        self.set_kernel_picos(self.kernel_picos());
        self.ppb.set(ppb);
    }

    /// Stops the monotonic clocks for so long.
    fn stop(&self, picos: u128) {
        let kernel = self.kernel_picos();
        self.pass(picos);
        self.set_kernel_picos(kernel);
        add(&self.raw, -(picos as i128));
    }

    /// Suspends the system. The counter goes on or jumps far away, because after a small jump back
    /// it would go back within a segment.
    pub(crate) fn suspend(&self, picos: u128, counter_jumps: bool) {
        self.stop(picos);
        self.step((picos / NANO) as i64);
        if counter_jumps {
            self.set_counter(self.counter() ^ 1 << 63);
        }
    }

    /// Moves the virtual machine to a host whose counter has another rate.
    pub(crate) fn migrate(&self, hertz: u64) {
        self.set_counter(self.counter());
        self.machine.set(self.machine.get().with_rate(hertz));
    }

    /// Moves the virtual machine to a host whose counter is ahead by so many nanoseconds.
    pub(crate) fn step_counter(&self, nanos: i64) {
        let ticks = i128::from(nanos) * i128::from(self.machine.get().hertz) / 1_000_000_000;
        self.set_counter(self.counter().wrapping_add_signed(ticks as i64));
    }

    /// Steps the wall clock, as settimeofday(2) or a leap second does.
    pub(crate) fn step(&self, nanos: i64) {
        add(&self.offset, nanos);
    }

    /// Steps all clocks of the kernel, as a change of the hypervisor's page does.
    pub(crate) fn step_all(&self, nanos: i64) {
        let picos = i128::from(nanos) * NANO as i128;
        self.set_kernel_picos(self.kernel_picos().saturating_add_signed(picos));
        add(&self.raw, picos);
    }

    /// Enters a time namespace whose clock is ahead by `nanos`.
    pub(crate) fn enter_namespace(&self, nanos: i64) {
        self.step_all(nanos);
        self.step(-nanos);
    }

    /// Does a part of a call, which takes time and may be interrupted.
    fn work(&self, nanos: u64) {
        self.pass(u128::from(nanos + self.random(nanos)) * NANO);
        if self.random(1_000_000) >= u64::from(self.machine.get().interrupts) {
            return;
        }
        self.pass(u128::from(1 + self.random(20)) * MICRO);
        match self.random(100) {
            0 => self.pass(u128::from(self.random(1000)) * MILLI),
            1..20 => self.pass(u128::from(self.random(10_000)) * MICRO),
            _ => {}
        }
        self.intrude();
    }

    /// Others read the clock, if there are any.
    fn intrude(&self) {
        if self.depth.get() == 2 {
            return;
        }
        if let Some(intruder) = self.intruder.as_ref() {
            self.depth.set(self.depth.get() + 1);
            for _ in 0..=self.random(4) {
                self.pass(u128::from(self.random(2000)) * NANO);
                intruder();
            }
            self.depth.set(self.depth.get() - 1);
        }
    }

    fn call<T>(&self, nanos: u64, read: impl Fn() -> T) -> T {
        self.work(nanos);
        let value = read();
        self.work(nanos);
        value
    }

    fn clock<T>(&self, read: impl Fn() -> T) -> Option<T> {
        self.pass(self.syscall.get());
        add(&self.kernel_reads, 1);
        let number = self.kernel_reads.get();
        let (preempted, picos) = self.preemption.get();
        if number == preempted {
            self.pass(picos);
            self.intrude();
        }
        let time = self.call(10, read);
        (!self.is_denied.get()).then_some(time)
    }
}

impl Source for Rc<World> {
    fn ticks(&self) -> u64 {
        self.ticks_ordered()
    }

    fn ticks_ordered(&self) -> u64 {
        let (at, ticks) = self.call(4, || (self.kernel(), self.counter()));
        self.read_at.set(at);
        ticks
    }

    fn monotonic(&self) -> Option<u64> {
        self.clock(|| self.kernel())
    }

    fn realtime(&self) -> Option<i64> {
        self.clock(|| self.wall())
    }

    fn raw(&self) -> Option<i64> {
        let time = self.clock(|| {
            ((5_000 * SECOND + self.now.get()).saturating_add_signed(self.raw.get()) / NANO) as i64
        })?;
        if self.is_raw_denied.get() {
            None
        } else {
            Some(time)
        }
    }

    fn detect(&self, trusts_hypervisor: bool) -> Result<Keeper, Unavailable> {
        add(&self.detections, 1);
        self.call(2_000, || self.unavailable.get().map_or(Ok(()), Err))?;
        let keeper = if self.is_paravirtual.get() {
            Keeper::Hypervisor
        } else {
            Keeper::Kernel
        };
        keeper.check_rate(!self.is_variable.get(), trusts_hypervisor)?;
        let reads = self.kernel_reads.get();
        let calls = Cell::new(0);
        let by_kernel = || {
            add(&calls, 1);
            self.pass(self.entry.get());
            self.call(10, || !self.is_denied.get())
        };
        let cost = compare(
            || self.monotonic(),
            || self.monotonic().is_some(),
            by_kernel,
        );
        let by_vdso = if self.syscall.get() > 0 {
            self.kernel_reads.get() - reads
        } else {
            0
        };
        // Readers that interrupt it make calls of their own.
        let is_shared = self.machine.get().is_shared;
        assert!(
            is_shared || calls.get() + by_vdso <= 16,
            "{calls:?} and {by_vdso} system calls"
        );
        keeper.check_cost(cost)?;
        Ok(keeper)
    }

    fn stated_frequency(&self) -> Option<u64> {
        self.machine.get().stated_hertz
    }
}
