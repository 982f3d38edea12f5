//! Counts the system calls of the vDSO's functions, on each CPU.
//!
//! A separate thread makes the calls, because a seccomp filter applies to one thread and cannot be
//! removed. The calling thread keeps its CPUs, its signal mask and its privileges. It moves the
//! other thread from CPU to CPU:
//!
//! ```text
//! for each CPU that this thread may use
//!     move the other thread there
//!     for each function
//!         tell it to make its calls, and wait for its answer, for a limited time
//!         if there is none, the CPU could not be tested:
//!             move the other thread to a CPU that was tested, and wait again
//! ```
//!
//! The wait is limited, because a thread of real-time priority may hold a CPU as long as it likes.
//! On a kernel before Linux 6.12 whose `kernel.sched_rt_runtime_us` is -1, no other thread ever
//! runs on such a CPU. A thread that waits for such a CPU runs again once another thread has moved
//! it away. The kernel moves it only if its new CPUs do not include the one for which it waits.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::ptr;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::{Pid, gettid, pipe2};

use crate::cpus;
use crate::seccomp::{MARK, deny_clock_calls};
use crate::vdso_call::VdsoCall;

/// The result of a count.
#[derive(Default)]
pub(crate) struct Count {
    /// The CPUs on which the calls were made. Empty if a sandbox does not allow the thread to be
    /// moved from CPU to CPU, unless the thread may use only one CPU.
    pub(crate) cpus: Vec<usize>,
    /// The CPUs that could not be tested, because another program did not give them up.
    pub(crate) busy: Vec<usize>,
    /// How many calls of each function were made.
    pub(crate) calls: u32,
    /// For each function, how many of its calls made a system call.
    pub(crate) entered: Vec<u32>,
}

/// How long to wait for the first CPU that another program does not give up. The time is halved
/// after each such CPU, so that the first few of them together take less than twice as long. But it
/// is never shorter than [`LEAST_PATIENCE`].
///
/// The wait is for the calls of one function only, so the time is long enough even on a slow
/// machine. It is also long enough on a CPU with a thread of real-time priority, because by default
/// the kernel's throttling leaves 50 ms of each second to other threads.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The shortest time to wait for a CPU. In this time, a thread without real-time priority gets its
/// turn on a CPU that several programs use.
const LEAST_PATIENCE: Duration = Duration::from_millis(50);

/// Returns how long to wait for the next CPU, after one that another program did not give up.
pub(crate) fn less(patience: Duration) -> Duration {
    (patience / 2).max(LEAST_PATIENCE)
}

impl Count {
    /// Returns the CPUs to which the thread is moved if `occupied` is not given up: the CPUs that
    /// were tested or, if there are none, those that are not known to be occupied.
    pub(crate) fn elsewhere(&self, allowed: &[usize], occupied: usize) -> Vec<usize> {
        if !self.cpus.is_empty() {
            return self.cpus.clone();
        }
        let mut others = allowed.to_vec();
        others.retain(|cpu| *cpu != occupied && !self.busy.contains(cpu));
        others
    }
}

/// Calls each function `on_each_cpu` times on each CPU that the calling thread may use, and counts
/// the system calls. The error says why nothing can be proved.
pub(crate) fn count(
    functions: &[VdsoCall],
    on_each_cpu: u32,
    mut patience: Duration,
) -> Result<Count, String> {
    let allowed = cpus::allowed();
    let caller = Caller::start(functions, on_each_cpu, patience)?;
    let mut count = Count {
        entered: vec![0; functions.len()],
        ..Count::default()
    };
    for cpu in &allowed {
        // A CPU that went offline meanwhile is left out.
        if !cpus::restrict(caller.thread, &[*cpu]) {
            continue;
        }
        let elsewhere = count.elsewhere(&allowed, *cpu);
        let is_busy = caller.call_all(&mut count.entered, &elsewhere, patience)?;
        count.calls += on_each_cpu;
        if is_busy {
            count.busy.push(*cpu);
            patience = less(patience);
        } else {
            count.cpus.push(*cpu);
        }
    }
    if count.calls == 0 {
        caller.call_all(&mut count.entered, &allowed, patience)?;
        count.calls = on_each_cpu;
        // The thread could not be moved. If it may use only one CPU, that CPU was tested
        // nevertheless.
        if let [only] = *allowed {
            count.cpus.push(only);
        }
    }
    // The thread needs CPU time to end, and the last CPU may be occupied by now.
    cpus::restrict(caller.thread, &allowed);
    caller.end();
    Ok(count)
}

pub(crate) const NO_TIME: &str =
    "other programs left no CPU time for the thread that makes the calls";

/// The handle to the thread that makes the calls. The thread that counts them holds it.
struct Caller {
    thread: Pid,
    /// Sends the index of the next function to call.
    orders: Sender<usize>,
    answers: Receiver<Answer>,
    /// The reading end of a pipe that gets a byte for each answer. `Receiver::recv_timeout` is not
    /// used, because it reads the clock, and std panics if a sandbox denies the clock.
    bell: File,
    handle: thread::JoinHandle<()>,
}

enum Answer {
    Ready(Pid),
    CannotDeny(String),
    /// How many calls of the function entered the kernel.
    Entered(u32),
}

impl Caller {
    /// Starts the thread, which denies itself the clock calls.
    fn start(functions: &[VdsoCall], calls: u32, patience: Duration) -> Result<Self, String> {
        let functions = functions.to_vec();
        let (bell, rope) =
            pipe2(OFlag::O_CLOEXEC).map_err(|error| format!("cannot create a pipe ({error})"))?;
        let mut rope = File::from(rope);
        let (orders, next_order) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        let mut send = move |what| {
            // `answer.send` fails if the thread that waits for answers has given up and dropped
            // `answers`. The error does not matter, because then no thread needs the answer.
            let _ = answer.send(what);
            let _ = rope.write_all(&[0]);
        };
        let work = move || {
            if let Err(why) = deny_clock_calls() {
                return send(Answer::CannotDeny(why));
            }
            send(Answer::Ready(gettid()));
            for index in next_order {
                send(Answer::Entered(call(functions[index], calls)));
            }
        };
        let handle = thread::Builder::new()
            .spawn(work)
            .map_err(|error| format!("cannot start a thread ({error})"))?;
        let mut caller = Self {
            thread: Pid::from_raw(0),
            orders,
            answers,
            bell: File::from(bell),
            handle,
        };
        match caller.receive(patience) {
            Some(Answer::Ready(thread)) => caller.thread = thread,
            Some(Answer::CannotDeny(why)) => {
                caller.end();
                return Err(why);
            }
            Some(Answer::Entered(_)) | None => return Err(NO_TIME.into()),
        }
        Ok(caller)
    }

    /// Calls each function on the CPU to which the thread was moved. For each function, adds to
    /// `entered` the number of calls that entered the kernel. Returns whether that CPU was busy. If
    /// it was, some calls were made on one of the CPUs `elsewhere`.
    fn call_all(
        &self,
        entered: &mut [u32],
        elsewhere: &[usize],
        patience: Duration,
    ) -> Result<bool, String> {
        let mut is_busy = false;
        for (index, entered) in entered.iter_mut().enumerate() {
            // `send` cannot fail, because the other thread receives orders until this sender is
            // dropped.
            let _ = self.orders.send(index);
            let mut answer = self.receive(patience);
            if answer.is_none() && !is_busy {
                is_busy = true;
                cpus::restrict(self.thread, elsewhere);
                answer = self.receive(patience);
            }
            let Some(Answer::Entered(more)) = answer else {
                return Err(NO_TIME.into());
            };
            *entered += more;
        }
        Ok(is_busy)
    }

    /// Waits for an answer. A signal that the caller handles interrupts the wait. The system call
    /// ppoll(2) then stores the rest of the time, which libc's functions do not return.
    #[allow(unsafe_code, reason = "libc has no function that returns the rest")]
    fn receive(&self, patience: Duration) -> Option<Answer> {
        let mut bell = libc::pollfd {
            fd: self.bell.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // The kernel's `timespec`: seconds and nanoseconds, each a `long`.
        let mut rest = [
            patience.as_secs() as libc::c_long,
            libc::c_long::from(patience.subsec_nanos() as i32),
        ];
        let no_mask = ptr::null::<libc::sigset_t>();
        let mut ready = Err(Errno::EINTR);
        while ready == Err(Errno::EINTR) {
            let (bell, rest) = (&raw mut bell, &raw mut rest);
            // SAFETY: the kernel writes only to `bell` and to the two words of `rest`. The mask
            // is null.
            let result = unsafe { libc::syscall(libc::SYS_ppoll, bell, 1, rest, no_mask, 0) };
            ready = Errno::result(result);
        }
        if ready != Ok(1) {
            return None;
        }
        (&self.bell).read_exact(&mut [0]).ok()?;
        self.answers.try_recv().ok()
    }

    /// Ends the thread. It has answered every order, so it ends as soon as it has a CPU.
    fn end(self) {
        drop(self.orders);
        let _ = self.handle.join();
    }
}

/// Calls a function `calls` times, and returns how many of these calls entered the kernel.
fn call(function: VdsoCall, calls: u32) -> u32 {
    let mut entered = 0;
    for _ in 0..calls {
        let answer = function.call();
        // time() returns seconds, so only a negative result is an error. The other functions return
        // a negated error number, except on powerpc, where it is positive.
        let asked_kernel = if function.returns_time() {
            answer == -i64::from(MARK)
        } else {
            answer.unsigned_abs() == MARK as u64
        };
        entered += u32::from(asked_kernel);
    }
    entered
}
