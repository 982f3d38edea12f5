//! A simulated machine: CPUs with a counter each, a kernel's clock that NTP, suspends and people change, and reads that take
//! time, are interrupted, and are moved to another CPU.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::sample::Source;
use crate::status::Status;

/// Picoseconds.
pub(crate) const NANO: u128 = 1_000;
pub(crate) const MICRO: u128 = 1_000 * NANO;
pub(crate) const MILLI: u128 = 1_000 * MICRO;
pub(crate) const SECOND: u128 = 1_000 * MILLI;

/// What a machine is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    /// Ticks a second.
    pub(crate) hertz: u64,
    /// The counter at the beginning.
    pub(crate) ticks: u64,
    pub(crate) stated: Option<u64>,
    /// By how many nanoseconds the second CPU's counter is ahead.
    pub(crate) skew: i64,
    /// How many of a million calls are interrupted: for microseconds, and some of them for much longer.
    pub(crate) interrupts: u32,
    pub(crate) seed: u64,
}

/// The machine while it runs.
pub(crate) struct World {
    now: Cell<u128>,
    machine: Cell<Machine>,
    /// When the counter was last set, and to what.
    counted: Cell<(u128, u64)>,
    /// When the kernel's rate was last changed, and what its clock was then, in picoseconds.
    kept: Cell<(u128, u128)>,
    /// By how many parts in a thousand million the kernel's clock is fast.
    ppb: Cell<i64>,
    offset: Cell<i64>,
    cpu: Cell<u32>,
    pub(crate) verdict: Cell<Result<(), Status>>,
    /// What the clocks cost more than the vDSO takes: a system call.
    pub(crate) dear: Cell<u128>,
    pub(crate) is_denied: Cell<bool>,
    /// Whether it can be told on which CPU a read is.
    pub(crate) tells_cpu: Cell<bool>,
    /// How often the kernel's verdict was asked for.
    pub(crate) verdicts: Cell<u32>,
    /// The kernel's clock when the counter was last read.
    pub(crate) read_at: Cell<u64>,
    random: Cell<u64>,
    intruder: RefCell<Option<Rc<dyn Fn()>>>,
    depth: Cell<u8>,
}

impl World {
    pub(crate) fn new(machine: Machine) -> Self {
        Self {
            now: Cell::new(0),
            counted: Cell::new((0, machine.ticks)),
            kept: Cell::new((0, 5_000 * SECOND)),
            ppb: Cell::new(0),
            offset: Cell::new(1_700_000_000_000_000_000),
            cpu: Cell::new(0),
            verdict: Cell::new(Ok(())),
            dear: Cell::new(0),
            is_denied: Cell::new(false),
            tells_cpu: Cell::new(true),
            verdicts: Cell::new(0),
            read_at: Cell::new(0),
            random: Cell::new(machine.seed),
            intruder: RefCell::new(None),
            depth: Cell::new(0),
            machine: Cell::new(machine),
        }
    }

    /// A number below this one (splitmix64).
    pub(crate) fn random(&self, below: u64) -> u64 {
        self.random.set(self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut x = self.random.get();
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % below
    }

    /// Who runs when a read is interrupted.
    pub(crate) fn intrude(&self, intruder: Option<Rc<dyn Fn()>>) {
        self.intruder.replace(intruder);
    }

    pub(crate) fn pass(&self, picos: u128) {
        self.now.set(self.now.get() + picos);
    }

    /// What will be then, if nothing happens before; nothing that is called here may change anything.
    pub(crate) fn foresee<T>(&self, picos: u128, look: impl Fn() -> T) -> T {
        let (now, machine) = (self.now.get(), self.machine.get());
        self.machine.set(Machine { interrupts: 0, ..machine });
        self.pass(picos);
        let seen = look();
        self.machine.set(machine);
        self.now.set(now);
        seen
    }

    fn counter(&self) -> u64 {
        let Machine { hertz, skew, .. } = self.machine.get();
        let (since, ticks) = self.counted.get();
        let ahead =
            if self.cpu.get() == 0 { 0 } else { i128::from(skew) * i128::from(hertz) / 1_000_000_000 };
        ticks
            .wrapping_add(((self.now.get() - since) * u128::from(hertz) / SECOND) as u64)
            .wrapping_add(ahead as u64)
    }

    fn kernel_picos(&self) -> u128 {
        let (since, picos) = self.kept.get();
        let passed = self.now.get() - since;
        let faster = passed as i128 * i128::from(self.ppb.get()) / 1_000_000_000;
        picos + passed.saturating_add_signed(faster)
    }

    /// The kernel's clock.
    pub(crate) fn kernel(&self) -> u64 {
        (self.kernel_picos() / NANO) as u64
    }

    pub(crate) fn wall(&self) -> i64 {
        self.kernel() as i64 + self.offset.get()
    }

    /// NTP changes the rate.
    pub(crate) fn discipline(&self, ppb: i64) {
        self.kept.set((self.now.get(), self.kernel_picos()));
        self.ppb.set(ppb);
    }

    /// The monotonic clock stands still meanwhile; the counter goes on, or begins anew, but far from the line that there is:
    /// in it, that would be a counter that goes back, and a clock with it.
    pub(crate) fn suspend(&self, picos: u128, counter_begins_anew: bool) {
        let kernel = self.kernel_picos();
        self.pass(picos);
        self.kept.set((self.now.get(), kernel));
        self.step((picos / NANO) as i64);
        if counter_begins_anew {
            self.counted.set((self.now.get(), self.counter() ^ 1 << 63));
        }
    }

    /// The virtual machine goes on elsewhere, where the counter has another rate.
    pub(crate) fn migrate(&self, hertz: u64) {
        self.counted.set((self.now.get(), self.counter()));
        let machine = self.machine.get();
        self.machine.set(Machine { hertz, stated: machine.stated.map(|_| hertz), ..machine });
    }

    /// Somebody sets the wall clock.
    pub(crate) fn step(&self, nanos: i64) {
        self.offset.set(self.offset.get() + nanos);
    }

    /// The process is in another time namespace, whose clock is ahead of this one's, or behind.
    pub(crate) fn enter_namespace(&self, nanos: i64) {
        let picos = self.kernel_picos().saturating_add_signed(i128::from(nanos) * NANO as i128);
        self.kept.set((self.now.get(), picos));
        self.step(-nanos);
    }

    pub(crate) fn move_to(&self, cpu: u32) {
        self.cpu.set(cpu);
    }

    /// A part of a call: it takes its time, and may be interrupted.
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
        self.cpu.set(self.random(2) as u32);
        let intruder = self.intruder.borrow().clone();
        if let Some(intruder) = intruder.filter(|_| self.depth.get() < 2) {
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
        let read = read();
        self.work(nanos);
        read
    }

    fn clock<T>(&self, read: impl Fn() -> T) -> Option<T> {
        self.pass(self.dear.get());
        let time = self.call(10, read);
        (!self.is_denied.get()).then_some(time)
    }
}

/// What a program has of it.
pub(crate) struct Reader(pub(crate) Rc<World>);

impl Source for Reader {
    fn ticks(&self) -> u64 {
        self.ticks_ordered()
    }

    fn ticks_ordered(&self) -> u64 {
        let (at, ticks) = self.0.call(4, || (self.0.kernel(), self.0.counter()));
        self.0.read_at.set(at);
        ticks
    }

    fn monotonic(&self) -> Option<u64> {
        self.0.clock(|| self.0.kernel())
    }

    fn realtime(&self) -> Option<i64> {
        self.0.clock(|| self.0.wall())
    }

    fn cpu(&self) -> Option<u32> {
        self.0.tells_cpu.get().then(|| self.0.cpu.get())
    }

    fn detect(&self) -> Result<(), Status> {
        self.0.verdicts.set(self.0.verdicts.get() + 1);
        self.0.call(2_000, || self.0.verdict.get())
    }

    fn stated_frequency(&self) -> Option<u64> {
        self.0.machine.get().stated
    }
}
